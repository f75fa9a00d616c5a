"""Reports that state facts line by line: of an environment, or of what a compiler plans. Each is a table."""
