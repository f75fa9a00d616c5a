"""Evidence: what frameworks, compilers, profilers and runtimes write, read into values with their places.

A reader knows one source and one file holds it: `frameworks` read steps and configuration, `witnesses` read the path,
`memory` reads memory and failed allocations. Readers know nothing of each other; `receipts.ingest` puts one receipt
together from what they found.
"""
