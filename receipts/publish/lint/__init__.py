"""Performance statements in Markdown, and whether the receipts that they link to bear them out."""
