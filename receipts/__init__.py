"""Receipts: where a training-performance number earns the right to be believed.

The kernel is a tower of rooms. A room imports the rooms below its line, and no other:

    cli                  commands: arguments in, exit code out
    api                  the same questions from Python, for the commands and the server as well
    publish              what people read: pages, reports, pictures
    workflows            what people start and wait for: submit, audit, revalidate, spool, recover
    questions            what people ask: compare, neighbours, noise, claims, preflight, fit, ceiling, a week
    store                the only room that talks to a database
    judging, estimate    rules and verdicts: values in, verdicts out; the memory model
    metrics              what is compared, and how it is read from one launch; FLOPs and memory by chip
    axes, ingest         what can change between two receipts; one receipt from logs and profiles
    receipt, stats       the document and the names that it uses; steady steps, effects, rounding
    signing              keys, envelopes, statements and signed notes, on a line with these
    base                 errors, configuration, bundled resources; how plugins are found

Around it are rings, which the kernel finds and does not import. Each of their folders can be deleted:

    plugins              a folder for each capability: serve, trust, exchange, study, why, …; import any room
    readers              a folder for each producer of logs and profiles; import `ingest` and what is below
    emit                 the recorder, which runs inside training jobs on the standard library alone

From Python, `receipts.load`, `check`, `compare` and `open` ask what the commands ask (docs/notebook.md); nothing is
imported until one of them is used.

``docs/how-it-works.md`` draws the rooms and walks a submit and a comparison through them; ``CONTRIBUTING.md`` says
where a change goes.
"""

__version__ = "0.2.0"


def lazy(package: str, places: dict[str, str]) -> tuple[object, object]:
    """``__getattr__`` and ``__dir__`` of a package whose names are imported when they are first used (PEP 562).

    ``places`` maps a module to the names that it defines, with spaces between them.
    """
    import sys

    modules = {name: module for module, names in places.items() for name in names.split()}
    space = vars(sys.modules[package])

    def imported(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        try:
            value = space[name] = getattr(import_module(modules[name]), name)
        except ModuleNotFoundError as error:
            if not f"{modules[name]}.".startswith(f"{error.name}."):
                raise
            raise ImportError(f"{package}.{name} is not in the recorder: pip install frontier-receipts") from None
        return value

    return imported, lambda: sorted({*space, *modules})


# For type checkers: `__init__.pyi`.
__getattr__, __dir__ = lazy(
    __name__,
    {
        "receipts.api.comparison": "Comparison",
        "receipts.api.receipt": "Check Receipt Receipts check load",
        "receipts.api.store": "Store compare open",
    },
)
