"""# C102 unknown_axis

*Why.* Missing is not equal. A row that does not say whether CUDA graphs were on was compared with one that says
they were; the 13 % belonged to the graphs.

*Rejected.* `parallelism.tensor` stated on A and not on B. Or on neither, where the inputs of both were not captured
whole and the two name no common `run.context`. A configuration file that differs, and whose settings nobody could read:
one setting of it changed, or several.

Also rejected: parameter counts that differ although nothing changed that adds parameters, because then some setting is
not what was stated; and two model names where neither side states a width or a depth, because a common context cannot
hold two geometries.

Also rejected, where no micro batch is stated: a number of micro steps that only one side states, or that the global
batches do not explain. The micro batch changed, or may have.

Also rejected, where a batch or a length is not stated: tokens a step that differ although neither changed. A context
holds no batch that the tokens contradict.

*Accepted.* Equal inputs of one program hold it, or what it is follows from the one input that changed. Neither states
it and both name the same context (held by context, and shown). Or the lane says that the
axis does not exist on it; or the lane allows to waive the axis, and a reason is given. A parameter count that grew by
one learned position for each token by which the sequence is longer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from receipts.axes import Unknown, in_words
from receipts.judging.rule import COMPARABLE, I, Offense, PairCase, Topic, rule

_COUNTS = ("model.parameters_total", "model.parameters_active")
_GEOMETRY = ("model.hidden", "model.depth")
_MAX_WIDTH = 2**16  # no model's hidden width is near it
_MAKE_TOKENS = ("batch.global_batch", "batch.sequence_length")
_TARGETS = 0.01  # of the tokens: the last of each sequence has no target, and some loops leave it out
_NOT_IN_NAMES = re.compile(r"[\W_]+")
_MAKES_PARAMETERS = ("code", "pattern", "dimensions", "routing", "adapters", "wheels")


@rule("C102", "unknown_axis", I, on="pair", question=COMPARABLE, about=Topic.UNKNOWN)
def unknown_axis(pair: PairCase) -> Iterator[Offense]:
    """Every axis that is not stated as it must be, with the side that lacks it."""
    indifferent = {
        item.axis
        for item in pair.metric.indifferent
        if not any(
            axis in pair.difference.axes or any(axis == gap.axis for gap in pair.difference.unknown)
            for axis in item.unchanged
        )
    }
    for gap in pair.difference.unknown:
        if gap.axis in pair.waived or gap.axis in indifferent:
            continue
        if gap.opaque:
            yield _unread(gap)
            continue
        paths = ", ".join(item.path for item in gap.members)
        where = {"a": "not stated on A", "b": "not stated on B", "both": "not stated"}[gap.missing]
        yield Offense(
            at=gap.axis,
            found=where if paths == gap.axis else f"{paths}: {where}",
            expected="stated on both sides, or held by inputs that were captured whole, or by one run.context",
            do=f"{_capture(gap)}state {paths}, or record the inputs of both launches: `receipts.emit` does",
        )
    if pair.difference.from_inputs:
        return  # of one program with one change, tokens, counts and names are what that change makes of them
    yield from _micro_batch(pair)
    yield from _tokens(pair)
    if not any(_makes_parameters(axis) for axis in _open(pair)):
        yield from _parameters(pair)
        yield from _names(pair)


def _unread(gap: Unknown) -> Offense:
    member = gap.members[0]
    return Offense(
        at=gap.axis,
        found=f"{in_words(member.a)} on A and {in_words(member.b)} on B differ, and their settings are unread",
        expected="settings that can be compared one by one",
        do="keep them in TOML, JSON, YAML or gin, or hand them to the recorder: rec.inputs({...})",
    )


def _makes_parameters(axis: str) -> bool:
    return axis in _MAKES_PARAMETERS or axis.startswith(("model.", "patches.", "features."))


def _capture(gap: Unknown) -> str:
    whole = [item.path.partition(".")[0] for item in gap.members if item.path.endswith(".complete")]
    return f"capture all {whole[0]}, and " if whole else ""


def _parameters(pair: PairCase) -> Iterator[Offense]:
    """Exact counts that differ beyond their printed digits: an axis moved that the receipts do not carry."""
    for path in _COUNTS:
        a, b = pair.a.launch.numbers.stated(path), pair.b.launch.numbers.stated(path)
        if a is not None and b is not None and not a.meets(b):
            va, vb = pair.values(path)
            if _of_positions(pair, vb - va):
                continue
            yield Offense(
                at=path,
                found=f"{va:,} on A, {vb:,} on B, and nothing changed that makes parameters",
                expected="one count for one architecture",
                do="state the setting of the model that differs, or correct the count",
            )


def _of_positions(pair: PairCase, more: int) -> bool:
    """Whether the counts differ by a learned position for each token that the sequence is longer, and nothing else."""
    a, b = pair.values("batch.sequence_length")
    width = more / (b - a) if a is not None and b is not None and a != b else 0.0
    hidden = {value for value in pair.values("model.hidden") if value is not None}
    return width in hidden if hidden else width.is_integer() and 0 < width <= _MAX_WIDTH


def _names(pair: PairCase) -> Iterator[Offense]:
    """Two models by their names, and no geometry or count that would show them to be one."""
    a, b = pair.values("model.name")
    if a is None or b is None or _plain(a) == _plain(b):
        return
    if any(None not in pair.values(path) for path in (*_GEOMETRY, "model.parameters_total")):
        return
    yield Offense(
        at="model.name",
        found=f"{a} on A, {b} on B, and neither states its geometry",
        expected="one model, or the settings that tell the two apart",
        do=f"state {' and '.join(_GEOMETRY)}, or one model.name where it is one model",
    )


def _micro_batch(pair: PairCase) -> Iterator[Offense]:
    """Micro steps are all that some rows tell of their micro batch: a context holds none that they contradict."""
    a, b = pair.values("batch.accumulation")
    whole_a, whole_b = pair.values("batch.global_batch")
    if a == b or pair.values("batch.micro_batch") != (None, None) or "batch.micro_batch" in _open(pair):
        return
    if None not in (a, b, whole_a, whole_b) and a * whole_b == b * whole_a:
        return
    counts = [f"{count} micro steps on {side}" for side, count in (("A", a), ("B", b)) if count is not None]
    yield Offense(
        at="batch.micro_batch",
        found=f"not stated, and {', '.join(counts)}",
        expected="one micro batch, or its value on both sides",
        do="state batch.micro_batch",
    )


def _tokens(pair: PairCase) -> Iterator[Offense]:
    """Tokens a step that no stated batch explains: a context holds no batch that they contradict."""
    a, b = pair.values("measurement.tokens_per_step")
    silent = [path for path in _MAKE_TOKENS if pair.values(path) == (None, None)]
    if None in (a, b) or abs(a - b) <= _TARGETS * max(a, b) or not silent or set(_MAKE_TOKENS) & set(_open(pair)):
        return
    yield Offense(
        at=silent[0],
        found=f"not stated, and {a:,} tokens a step on A, {b:,} on B",
        expected="tokens that one batch of one length makes, or both on both sides",
        do=f"state {' and '.join(silent)}",
    )


def _plain(name: str) -> str:
    return _NOT_IN_NAMES.sub("", name).casefold()


def _open(pair: PairCase) -> tuple[str, ...]:
    """Axes that changed, or that may have."""
    return (*pair.difference.axes, *(gap.axis for gap in pair.difference.unknown))
