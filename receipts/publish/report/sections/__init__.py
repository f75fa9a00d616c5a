"""Sections of a report, one a module: its values, how they are gathered, and how they are put in words."""
