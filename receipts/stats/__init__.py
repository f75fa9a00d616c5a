"""Calculators: durations in, segments, summaries, effects and intervals out.

Nothing here reads a file, a receipt or a store. Effects are judged on launches, never on raw steps: steps of one
launch are dependent, and launches of one configuration differ by more than their steps tell.
"""
