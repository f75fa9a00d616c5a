"""Importers: records that others keep, turned into receipts without adding anything to them."""
