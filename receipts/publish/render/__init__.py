"""What renders a page: a terminal, Markdown, HTML."""
