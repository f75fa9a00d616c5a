"""Bridges: chains of accepted receipts, each one axis from the next, between two that are several axes apart."""
