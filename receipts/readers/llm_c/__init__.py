"""llm.c: console and main.log."""
