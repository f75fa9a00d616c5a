"""Leaves that a step's program shows: batch, length, widths, depth, types, recomputation.

The program says what no argument does. An argument of 4 x 129 tokens trains 4 x 128 of them: the lookup in the
embedding has the rows and the length that were computed, and a scan around it how often.
"""

from __future__ import annotations

import hashlib
from math import prod

from receipts.emit.sight.jax_program import TYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from receipts.emit.sight.jax_program import Lookup, Product, StepProgram

# The least share of all work that a type has to carry to be named.
MIN_SHARE = 0.10


def facts(program: StepProgram) -> dict[str, Any]:
    """Leaves by path that a step's program shows; what it leaves open is absent."""
    work: dict[str, float] = {}
    for item in program.products:
        if item.dtype:
            work[item.dtype] = work.get(item.dtype, 0.0) + float(item.size) * item.inner * item.place.times
    least = MIN_SHARE * sum(work.values())
    types = "+".join(name for name in sorted(work, key=lambda name: -work[name]) if work[name] >= least)
    leaves: dict[str, Any] = {"compile.posture": "jit", "numerics.compute_dtype": types}
    training = any(item.place.part == "forward" for item in program.products)
    lookup = main_lookup(program)
    if lookup is not None:
        leaves |= {"model.vocabulary": lookup.vocabulary, "model.hidden": lookup.hidden}
        leaves |= batch(program, lookup)
    rows = 0
    if training:
        parameters = parameter_arguments(program)
        kinds = {TYPES.get(program.types[at], "") for at in parameters}
        rows = rows_of_values(program)
        if lookup is not None or rows:
            shapes = (program.arguments[at][at in program.copies :] for at in parameters)
            leaves["model.parameters_total"] = sum(map(prod, shapes))
        if rows and not program.skips:
            leaves |= {"batch.micro_batch": rows, "batch.global_batch": rows, "batch.accumulation": 1}
        leaves["numerics.parameter_dtype"] = kinds.pop() if len(kinds) == 1 else None
        leaves["numerics.recompute"] = _recompute(program)
        ranks = adapter_ranks(program)
        leaves["numerics.adapters.kind"] = "lora" if ranks else None
        leaves["numerics.adapters.rank"] = ranks.pop() if len(ranks) == 1 else None
        if lookup is not None:
            leaves |= _architecture(program, lookup)
    known = {path: value for path, value in leaves.items() if value or value is False}
    return known | ({"model.vocabulary": 0} if rows else {})


def parameter_arguments(program: StepProgram) -> list[int]:
    """The arguments that the forward pass takes and that hold numbers, but for those of every token, as a mask does."""
    tables = {item.table for item in program.lookups}
    of_tokens = {item.rows for item in program.lookups}
    of_tokens |= {program.arguments[item.tokens] for item in program.lookups if item.tokens is not None}
    floats = [at for at in {*program.used, *tables} if "float" in program.types[at]]
    if not program.learns_numbers:  # as the scale of a loss is no parameter
        floats = [at for at in floats if program.arguments[at]]
    if not program.lookups:
        # Without tokens the data are values, too; what is no data comes back, as it was or updated.
        return sorted(at for at in floats if (program.arguments[at], program.types[at]) in program.given_back)
    return sorted(at for at in floats if program.arguments[at] not in of_tokens)


def architecture(program: StepProgram, arguments: Sequence[tuple[Any, Any]]) -> str | None:
    """A digest of the parameters by their names within what holds them all, and shapes."""
    parameters = parameter_arguments(program)
    if not parameters or not (program.lookups or rows_of_values(program)):
        return None
    names = [tuple(map(str, arguments[at][0])) for at in parameters]
    ends = enumerate(zip(min(names), max(names), strict=False))
    held = next((at for at, parts in ends if len(set(parts)) > 1), 0)
    lines = sorted(
        f"{''.join(name[held:])}\0{program.arguments[at][at in program.copies :]}"
        for at, name in zip(parameters, names, strict=True)
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def rows_of_values(program: StepProgram) -> int:
    """The batch of a step that takes values, such as images, and no tokens; 0 where its arguments do not say."""
    parameters = set(parameter_arguments(program))
    data = [at for at in program.used if at not in parameters and program.arguments[at]]
    whole = any(len(program.arguments[at]) > 1 and "float" in program.types[at] for at in data)
    tokens = any(len(program.arguments[at]) > 1 and "int" in program.types[at] for at in data)
    rows = {program.arguments[at][0] for at in data}
    once = all(program.used[at] == 1 for at in data)
    return rows.pop() if whole and once and not tokens and len(rows) == 1 and not program.lookups else 0


def main_lookup(program: StepProgram) -> Lookup | None:
    """The lookup of tokens: of those of the forward pass the one with the most rows, then of the larger table."""
    forward = [item for item in program.lookups if item.place.part in ("", "forward") and len(item.rows) > 1]
    return max(forward, key=lambda item: (prod(item.rows), item.vocabulary), default=None)


def forward_passes(program: StepProgram, lookup: Lookup) -> int:
    """How often a step computes the forward pass of this lookup."""
    same = (item for item in program.lookups if item.table == lookup.table and item.place.part in ("", "forward"))
    return sum(item.place.times for item in same if item.rows == lookup.rows)


def batch(program: StepProgram, lookup: Lookup) -> dict[str, Any]:
    """Sequences and their length, in one pass on one device and in a step; how many passes accumulate."""
    rows, length = prod(lookup.rows[:-1]), lookup.rows[-1]
    rounds = steps(program)
    passes = forward_passes(program, lookup) // max(1, rounds)
    leaves: dict[str, Any] = {"batch.micro_batch": rows, "batch.sequence_length": length}
    given = program.arguments[lookup.tokens] if lookup.tokens is not None else ()
    if not rounds or program.types[lookup.table].startswith("int") or program.skips or not _computes(program, lookup):
        return leaves
    groups = 1
    if lookup.place.devices > 1:
        # Within a split program: all the rows that were given, of which each device has its part.
        groups = prod(given[:-1]) // (rows * passes * rounds) if given and given[-1] in (length, length + 1) else 0
    if groups:
        leaves |= {"batch.global_batch": rows * passes * groups, "batch.accumulation": passes}
    return leaves


def _computes(program: StepProgram, lookup: Lookup) -> bool:
    """Whether a weight is multiplied by all the rows that were looked up, at once or one position after another."""
    rows, length = prod(lookup.rows), lookup.rows[-1]
    weighted = [item for item in program.products if item.place.part == "forward" and item.weight is not None]
    return not weighted or any(
        item.size >= (rows // length if item.place.times >= length * lookup.place.times else rows) * item.outer
        for item in weighted
    )


def steps(program: StepProgram) -> int:
    """Steps in one call: as often as a loop trains the table; 0 where that is decided as it runs."""
    lookup = main_lookup(program)
    return program.rounds.get(lookup.table, 1) if lookup is not None else 1


def adapter_ranks(program: StepProgram) -> set[int]:
    """Ranks of low-rank adapters: of products of two weights, or of two trained beside one that is not."""
    forward = [item for item in program.products if item.place.part == "forward" and item.weight is not None]
    parameters = {*parameter_arguments(program)}  # data are values, too, and those of few features are narrow
    ranks = {
        item.inner
        for item in forward
        if {item.weight, item.merged} <= parameters
        and 2 * item.inner <= min(prod(side) // item.inner for side in item.sides)
    }
    trained = {item.size for item in program.products if item.place.part == "backward" and item.weight is None}
    learn: set[tuple[int, int]] = set()
    keep: set[tuple[int, int]] = set()
    for item in forward:
        (learn if item.inner * item.outer * item.experts in trained else keep).add((item.inner, item.outer))
    pairs = ((down, up) for down in learn for up in learn if down[1] == up[0] and (down[0], up[1]) in keep)
    return ranks | {down[1] for down, up in pairs if 2 * down[1] <= min(down[0], up[1])}


def tokens(program: StepProgram) -> int | None:
    """Tokens of a step over all devices; None where the program does not say."""
    lookup = main_lookup(program)
    leaves = batch(program, lookup) if lookup is not None else {}
    whole = leaves.get("batch.global_batch")
    return whole * leaves["batch.sequence_length"] if whole else None


def _recompute(program: StepProgram) -> str:
    if not program.policies:
        return "none"
    named = sorted(program.policies - {"", "nothing_saveable"})
    if named:
        return f"selective: {', '.join(named)}"
    scores = [item for item in program.products if item.weight is None and item.place.part in ("forward", "again")]
    forward = sum(item.place.times for item in scores if item.place.part == "forward")
    again = sum(item.place.times for item in scores if item.place.part == "again")
    return "full" if again >= forward else "selective"


def _architecture(program: StepProgram, lookup: Lookup) -> dict[str, Any]:
    """Depth, heads and widths of a decoder whose blocks are alike."""
    passes, (rows, length) = forward_passes(program, lookup), (prod(lookup.rows[:-1]), lookup.rows[-1])
    forward = [item for item in program.products if item.place.part == "forward"]
    scores = [item for item in forward if item.weight is None and item.out.count(length) > 1]
    widths = {item.inner for item in scores}
    leaves: dict[str, Any] = {}
    if any(item.weight == lookup.table and item.outer == lookup.vocabulary for item in forward):
        leaves["model.tied_embeddings"] = True
    elif any(item.outer == lookup.vocabulary and item.inner == lookup.hidden for item in forward):
        leaves["model.tied_embeddings"] = False
    attending = sum(item.place.times for item in scores) / passes
    joined = 0
    if len(widths) == 1:
        width = widths.pop()
        attending /= 2 if width == length else 1  # then the values' product has the scores' shape
        heads = scores[0].size // (rows * length * length)
        least = min(prod(side) for side in scores[0].sides)
        leaves |= {"model.heads": heads, "model.head_dim": width, "model.kv_heads": least // (rows * length * width)}
        joined = heads * width
    elif not scores:
        attending = program.fused / passes
    depth = attending if attending else max(program.layers, default=0)
    if not depth or depth != int(depth):
        return leaves
    leaves["model.depth"] = depth = int(depth)
    if scores:
        leaves["model.attention_kinds"] = f"{depth} full"  # each position's product with every other one is computed
    return leaves | _feed_forward(forward, lookup, joined, depth * passes, program.top_k, attending=bool(attending))


def _feed_forward(
    forward: list[Product], lookup: Lookup, joined: int, blocks: int, chosen: set[int], *, attending: bool
) -> dict[str, Any]:
    """The width and the kind of the feed-forward of every block, and with it the pattern of the blocks."""
    hidden, vocabulary = lookup.hidden, lookup.vocabulary
    downs: dict[tuple[int, int], int] = {}
    for item in forward:
        key = item.inner, item.experts
        # As wide as the model on both sides are the projections of attention.
        if item.weight is not None and item.outer == hidden and key != (hidden, 1):
            downs[key] = downs.get(key, 0) + item.place.times
    if (joined, 1) in downs:
        downs[joined, 1] -= blocks  # what attention gives back
    if attending and not any(times > 0 for times in downs.values()):
        weights = [item for item in forward if item.weight is not None and item.inner == hidden]
        square = sum(item.place.times for item in weights if item.outer == hidden)
        joint = any(item.outer not in (hidden, vocabulary) for item in weights)
        # What is square may be attention's: what it gives back, and queries, keys and values where each has its own.
        return {"model.pattern": "*", "model.alphabet": "nemo"} if square <= blocks * (1 if joint else 4) else {}
    every = [key for key, times in downs.items() if times == blocks]
    if len(every) != 1 or not attending:
        return {}
    inner, experts = every[0]
    ups = [item for item in forward if item.weight is not None and item.inner == hidden]
    # The last one gives the logits, which may be as wide as the feed-forward.
    ups = ups[:-1] if ups and ups[-1].outer == vocabulary else ups
    if chosen and experts == 1:
        # What chooses is narrower than all else; its experts are summed over with their widths.
        experts = min((item.outer for item in ups), default=1)
        if inner % experts:
            return {}
        inner //= experts
    # One matrix may hold all experts side by side.
    wide = [(item.outer * item.experts, item.place.times) for item in ups if item.experts in (1, experts)]
    plain, double = (sum(times for size, times in wide if size == by * inner * experts) for by in (1, 2))
    if (plain, double) not in ((blocks, double), (2 * blocks, double), (0, blocks)):
        return {}
    gated = plain != blocks
    leaves: dict[str, Any] = {"model.pattern": "[*-]", "model.alphabet": "nemo", "model.ffn": inner}
    if experts > 1:
        leaves |= {"model.pattern": "[*E]", "model.experts": experts, "model.expert_ffn": inner, "model.ffn": None}
        leaves["model.top_k"] = chosen.pop() if len(chosen) == 1 else None
    return leaves | {"model.ffn_projections": 3 if gated else 2}
