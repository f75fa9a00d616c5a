"""Readers: a folder a producer, with what it prints and writes: lines, configuration, memory, and evidence of the path.

A folder holds modules that end in ``READERS``, and tables of names (``*.toml``). It imports the engine,
`receipts.ingest`, and never another folder. `receipts.ingest.reader` finds the folders in one loop; each can be
deleted, and a new one needs no entry elsewhere. ``order.toml`` is the order of what they read in a receipt.
"""
