"""Launching a plan: a process for each attempt, a receipt of every attempt, and the ladder of smaller plans."""
