"""Ingesting: what a run left behind, files of any known form, put together into one receipt."""
