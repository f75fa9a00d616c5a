"""MaxText: its log, its metrics file, and tables that people make of them."""
