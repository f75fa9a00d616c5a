"""Receipts: where a training-performance number earns the right to be believed.

The rooms, from the top. A room imports the rooms below its line, and no other:

    cli                  commands: arguments in, exit code out
    publish              what people read: reports, pictures, annotated notebooks
    workflows            what people start and wait for: submit, run, export, import, audit, revalidate
    questions            what people ask: compare, neighbours, bridge, sweep, noise, claims, preflight, fit, ceiling
    store                the only room that talks to a database
    judging, estimate    rules and verdicts: values in, verdicts out; the memory model
    metrics              what is compared, and how it is read from one launch; FLOPs and memory by chip
    axes, ingest         what can change between two receipts; one receipt from logs and profiles
    receipt, stats       the document and the names that it uses; steady steps, effects, rounding
    base                 errors, configuration, bundled resources

Beside the tower, `emit` is the recorder. It runs inside training jobs on the standard library alone.

``docs/how-it-works.md`` draws the rooms and walks a submit and a comparison through them.
"""

__version__ = "0.1.0"
