"""Training loops whose lines a table describes, without a program."""
