"""Receipts: where a training-performance number earns the right to be believed.

The rooms, from the top. A room imports the rooms below its line, and no other:

    cli                  commands: arguments in, exit code out
    serve                the server of a team: HTTP, pages, MCP
    api                  the same questions from Python, for the two above as well
    publish              what people read: reports, pictures, annotated notebooks
    workflows            what people start and wait for: submit, run, export, import, audit, revalidate
    questions            what people ask: compare, neighbours, bridge, sweep, noise, claims, preflight, fit, ceiling
    store                the only room that talks to a database
    judging, estimate    rules and verdicts: values in, verdicts out; the memory model
    metrics              what is compared, and how it is read from one launch; FLOPs and memory by chip
    axes, ingest         what can change between two receipts; one receipt from logs and profiles
    receipt, stats       the document and the names that it uses; steady steps, effects, rounding
    signing              keys, envelopes, statements and signed notes, on a line with these
    base                 errors, configuration, bundled resources

Beside the tower, `emit` is the recorder. It runs inside training jobs on the standard library alone.

From Python, `receipts.load`, `check`, `compare` and `open` ask what the commands ask (docs/notebook.md); nothing is
imported until one of them is used.

``docs/how-it-works.md`` draws the rooms and walks a submit and a comparison through them.
"""

__version__ = "0.1.0"

# Where each public name is (for type checkers: `__init__.pyi`). Imported on first use.

_PLACES = {
    "Check": "receipts.api.receipt",
    "Comparison": "receipts.api.comparison",
    "Receipt": "receipts.api.receipt",
    "Receipts": "receipts.api.answer",
    "Store": "receipts.api.store",
    "check": "receipts.api.receipt",
    "compare": "receipts.api.store",
    "load": "receipts.api.receipt",
    "open": "receipts.api.store",
}


def __getattr__(name: str) -> object:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(place), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
