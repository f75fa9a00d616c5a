"""Receipts: where a training-performance number earns the right to be believed.

The engine, from the top layer to the bottom one; a module imports what stands below it (``pyproject.toml``, section
importlinter, holds the exact order):

    cli             the commands: arguments in, exit code out
    report          pages about a week, a lane, a comparison, a claim; `draw` holds the pictures
    submit compare side effect replicates neighbours bridge sweep noise
    preflight plan fit runner envelope ceiling
    claims lint answers repro revalidate audit spool importers export
                    what people ask, one module a question
    store           the only part that talks to a database
    questions       the recipe of a comparison, which all of the above ask
    judge proof rulebook rule study facts
                    runs the rules; loads them; what a rule is, and what it may know
    verdict metrics witness signature
                    answers as data; what is compared; a path shown by another launch; whether a launch was seen before
    axes lane       what can change between two receipts; the contract that a receipt names
    ingest chips    one receipt from many files; memory by physical chip
    evidence memory stats draw
                    readers of logs and profiles; memory estimates; statistics
    accelerators flops patterns route
                    registries: peaks, FLOPs formulas, block patterns, names of what computes
    receipt         the document: its fields, their roles, and how bytes become one
    resources config amounts value errors
                    what all of them use
    emit            beside the layers: the recorder, which runs inside training jobs with the standard library alone

``docs/how-it-works.md`` follows one receipt through them. This module holds nothing but the version, so that
``receipts --version`` imports nothing else.
"""

__version__ = "0.1.0"
