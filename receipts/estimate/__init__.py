"""Memory geometry: what a launch holds on its fullest chip, surface by surface, from what its receipt states.

`resolve` reads stated leaves into a `setup`; `estimate` adds its surfaces up, each from a module of its own; `shrink`
asks what changes it. Plain values in, bytes out.
"""
