"""Attacks on everything that reads what strangers wrote, with figures: `make attack`. Minutes; not part of CI."""
