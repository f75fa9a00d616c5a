"""Probes: what is read about the job from what the job has imported already.

A probe is a module of this package with

- ``NAME: str``, a word for its notes;
- any of ``at_start(stated)``, ``at_phase(stated, phase)``, ``at_warm(stated)``, ``at_span(stated, begins)`` and
  ``at_end(stated)``, each given its own `ProbeOutput`;
- where it may wait (git, a subprocess, many files, a network disk) ``MAY_BLOCK = True``: it then runs in a thread of
  its own, touches no framework, and is given up when its time is over. Others run in the caller's thread and must be
  made of calls that return at once;
- where ranks would all say the same, ``RANKS = "host"`` (the first rank of each host) or ``"first"`` (rank 0 alone);
- where the default limit does not do, ``LIMIT_SECONDS``.

It looks only at `sys.modules` (an import of torch or jax of its own accord would change the job), at allow-listed names
of `os.environ` (`receipts.emit.secrets`), at files of the standard kind (/proc, installed metadata) and at git by a
subprocess. It waits for no device. Whatever it raises becomes a note; its time is recorded.

``at_start`` runs when the recorder is entered, ``at_phase`` after that with ``post_init``, after the first step with
``post_step0``, after the first span of compiling with ``post_compile``, and with ``steady`` at the end, before
``at_end``. ``at_warm`` runs after the last step of the warm-up, where the caller says how long that is, ``at_span``
where a span of evaluation or of a checkpoint begins and ends. A framework may be imported between any two of them.
"""

from __future__ import annotations

# Modules of this package, in the order in which they run. The first statement of a leaf wins.
NAMES: tuple[str, ...] = (
    *("environment", "host", "process", "wheels", "code", "inputs", "megatron", "pytorch", "dynamo"),
    *("transformer_engine", "torch_xla", "jax", "nvml", "frameworks"),
)
