"""Shells: exported variables and lists of installed packages."""
