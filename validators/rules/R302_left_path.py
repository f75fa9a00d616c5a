"""# R302 left_path

*Why.* A run that leaves its path still finishes, and its number is another system's. `torch.median` on a TPU lane sent
every step through the host and back; the loss was the same to the last bit.

*Rejected.* `te_fused` was asked for and unfused attention ran; `aten::median` fell back 20 times in 20 steps; a CPU
computed in place of the accelerator; eager code ran in place of compiled code; the compiler computed bf16 matmuls in
fp32; CUDA graphs were replayed that nobody asked for. A witness launch of the same configuration saw another path than
the launch itself (where it cannot be told whether the witness ran the same configuration, the question stays open; a
witness of another context never contradicts). Open as well: a trace in which nothing attends, of a model whose pattern
has attention.

*Accepted.* What was witnessed is what was intended and what the lane permits. Where a launch states no intent
(`path.intended`), the lane is the intent: any path that it permits is right. `auto` intends any permitted path, and
`xla` any attention that XLA makes itself, and `flex` any of its dispatchers. fp32 matmuls for bf16 ones, where the lane
says that its compiler widens them (`widens`). Host reads (`aten::_local_scalar_dense`)
are not fallbacks: R303 judges them. R307 judges FP8 that did not run, and R309 a partition that the compiler did not
keep.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from receipts.judging.rule import ALL, PATH, Case, E, I, Offense, rule
from receipts.metrics.flops import geometry_of
from receipts.receipt.accelerators import find_accelerator
from receipts.receipt.names import ANYTHING, HOST_READ, WITNESSED, answers, anything_witnessed, dtypes, parts, permitted
from receipts.receipt.patterns import ATTENDING

_NAMES = (*("framework", "runtime", "attention", "gemm", "dispatch", "ssm"), *("cross_entropy", "mtp_cross_entropy"))
_ASKED = {
    **{name: f"path.intended.{name}" for name in _NAMES},
    "posture": "compile.posture",
    "compute_dtype": "numerics.compute_dtype",
}
_UNCOMPILED = "torch.compile:"  # before the name of a function that torch.compile gave back to the interpreter
_COMPILER = "xla"  # as an attention: any kernel that the compiler makes, of which evidence names the kind
_GRAPHS_SEEN = "path.witnessed.cuda_graphs"


def _needs(case: Case) -> Iterator[str]:
    if not anything_witnessed(case.parsed):
        yield WITNESSED
        return
    for name, intended_path in _ASKED.items():
        seen, wanted = f"{WITNESSED}.{name}", name in case.lane.witness
        if name not in _NAMES and (wanted or seen in case.stated):
            yield intended_path
        # Nothing shows that a path is not there; one that is, where none was meant, is an offense.
        if wanted or (name in _NAMES and parts(case.get(intended_path))):
            yield seen
    if "fallbacks" in case.lane.witness and case.receipt.path.witnessed.fallbacks is None:
        yield f"{WITNESSED}.fallbacks"
    if case.lane.accelerators:
        yield "hardware.accelerator"


@rule("R302", "left_path", E, question=PATH, taints=(ALL,), needs=_needs, of_configuration=True)
def left_path(case: Case) -> Iterator[Offense]:
    """Leaves whose witnessed value is not the intended or not a permitted one, fallbacks, and foreign machines."""
    yield from _machine(case)
    for name, intended_path in _ASKED.items():
        want, got = case.get(intended_path), case.get(f"{WITNESSED}.{name}")
        if got is None or (name == "framework" and case.lane.frameworks and got not in case.lane.frameworks):
            continue  # a foreign framework is R306's
        allowed = case.lane.path.get(name)
        if allowed is not None and not permitted(got, allowed):
            yield _offense(name, got, f"one that lane {case.lane.name} permits: {', '.join(allowed)}")
        elif want is not None and not _same(name, want, got) and not (name == "compute_dtype" and _widened(case, got)):
            yield _offense(name, got, f"{want}, as {intended_path} asks")
    yield from _nothing_attends(case)
    graphs = case.get("compile.cuda_graph_implementation")
    if case.get(_GRAPHS_SEEN) is True and graphs is not None and not parts(graphs):
        yield Offense(
            at=_GRAPHS_SEEN,
            found="graphs were captured and replayed",
            expected=f"{graphs}, as compile.cuda_graph_implementation asks",
            do="find what turned graphs on, and state it; this number belongs to a launch with graphs",
        )
    yield from _fallbacks(case)
    yield from _contradictions(case)


def _nothing_attends(case: Case) -> Iterator[Offense]:
    """A trace without attention, of a model that has some: it ran where no operator shows it, or not at all."""
    blocks = geometry_of(case.stated).blocks or {}
    if case.get(f"{WITNESSED}.attention") == "none" and any(blocks.get(kind) for kind in ATTENDING):
        yield _offense("attention", "none", "what computes the attention of model.pattern")._replace(level=I)


def _contradictions(case: Case) -> Iterator[Offense]:
    for item in case.borrowed.contradictions:
        yield Offense(
            at=item.path,
            found=f"{_words(item.own)}, and witness {item.witness[:12]} saw {_words(item.seen)}",
            expected="one path in all launches of one configuration",
            do="find which of them left the path: look into both, and supersede or retract the receipt that is wrong",
            level=E if item.sure else I,
        )


def _words(seen: Any) -> str:
    if isinstance(seen, bool):
        return "graphs" if seen else "no graphs"
    return ", ".join(map(str, seen)) or "none" if isinstance(seen, tuple | dict) else str(seen)


def _same(name: str, want: Any, got: Any) -> bool:
    if str(want).lower() in ANYTHING:
        return True
    if name == "gemm" and parts(want) and all(dtypes(word) for word in parts(want)) and not _library(want):
        return dtypes(want) == dtypes(got)
    if name == "gemm" and want and not dtypes(want) and all(word.isalnum() for word in parts(want)):
        return {word.partition("_")[0] for word in parts(got)} == parts(want)  # a library, and its type left open
    if name == "attention" and parts(want) == {_COMPILER}:
        return {word.partition("_")[0] for word in parts(got)} == {_COMPILER}
    if name == "compute_dtype":
        requested, seen = dtypes(want), dtypes(got)
        return parts(want) == parts(got) or (
            bool(requested) and (requested == seen or not requested <= {"bf16", "fp16", "fp32", "tf32"})
        )
    return answers(want, got)


def _widened(case: Case, got: Any) -> bool:
    """Whether fp32 ran for types that the lane's compiler has no product of, and what else ran was asked for."""
    asked, seen, widened = dtypes(case.get(_ASKED["compute_dtype"])), dtypes(got), set(case.lane.widens)
    return bool(asked & widened and seen) and asked - widened <= seen <= asked | {"fp32"}


def _library(gemm: Any) -> bool:
    """Whether a GEMM names more than its type: ``te_fp8`` does, ``fp8`` leaves the library open."""
    return any("_" in word for word in parts(gemm))


def _offense(name: str, got: Any, expected: str) -> Offense:
    return Offense(
        at=f"{WITNESSED}.{name}",
        found=f"{name} {got}",
        expected=expected,
        do="find why it left the path and run again; this number belongs to the path that ran",
    )


def _machine(case: Case) -> Iterator[Offense]:
    stated = case.get("hardware.accelerator")
    if stated is None or not case.lane.accelerators:
        return
    known = find_accelerator(str(stated))
    if known is not None and known.key in case.lane.accelerators:
        return
    yield Offense(
        at="hardware.accelerator",
        found=str(stated),
        expected=f"an accelerator of lane {case.lane.name}: {', '.join(case.lane.accelerators)}",
        do="name the lane that this machine belongs to",
        level=E if known is not None else I,
    )


def _fallbacks(case: Case) -> Iterator[Offense]:
    if case.receipt.path is None or case.receipt.path.witnessed is None:
        return
    # Operators of aten:: are native where a lane does not ask for fallbacks; a function that lost its program is not.
    required = "fallbacks" in case.lane.witness
    for name, count in (case.receipt.path.witnessed.fallbacks or {}).items():
        if count > 0 and name != HOST_READ and (required or name.startswith(_UNCOMPILED)):
            yield Offense(
                at=f"{WITNESSED}.fallbacks.{name}",
                found=f"{name} fell back {f'{count:,} times' if count != 1 else 'once'}",
                expected="no operator outside the path",
                do=f"replace {name} by an operator that the path has, and run again",
            )
