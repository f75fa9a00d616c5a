"""Rows that leave a store and come into another: backup, export, import."""
