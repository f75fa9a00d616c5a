"""# R118 layout_torn

*Why.* A sequence, a stack of layers or a feed-forward that a degree does not divide describes another launch than the
one that ran: the framework fails at start, or pads in silence and measures another model.

*Rejected.* 4,100 tokens over context 8. 52 blocks over pipeline 4 of 2 virtual stages, where no stage layout is stated.
A feed-forward of 18,944 over tensor 3, an expert's of 896 over tensor 3 inside the experts, 28 SSM heads over tensor 8.
Expert tensor 2, expert 4 and pipeline 2 on eight chips. As W: on a lane without a convention for its degrees; layers
that do not divide where the framework cuts the stack unevenly by itself; a hidden width that is not heads × head width.

*Accepted.* 52 blocks over pipeline 2 of 2 virtual stages. 54 blocks over pipeline 4 with a stated stage layout, or
with a pattern whose stages are marked. A degree of 1 tears nothing. A microbenchmark: it has no layout.

Megatron-Core refuses a depth that the stages do not divide, unless a layout is given; other frameworks cut
the stack by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from receipts.judging.rule import Case, Offense, W, layout_rule
from receipts.metrics.degrees import CHIPS, CONTEXT, EXPERT, EXPERT_TENSOR, PIPELINE, TENSOR, degree
from receipts.metrics.flops import geometry_of
from receipts.receipt.patterns import STAGE

LAYOUT, VIRTUAL, DEPTH = "parallelism.stage_layout", "parallelism.virtual_pipeline", "model.depth"
SEQUENCE, FFN, EXPERT_FFN = "batch.sequence_length", "model.ffn", "model.expert_ffn"
EVEN = frozenset({"megatron-core"})  # frameworks that refuse stages of unequal depth
HEADS, WIDTH, HIDDEN = "model.heads", "model.head_dim", "model.hidden"


def needs(case: Case) -> Iterable[str]:
    """What each degree above one divides; the degrees themselves are R105's."""
    if _ways(case, CONTEXT) > 1:
        yield SEQUENCE
    if _ways(case, PIPELINE) > 1 and not _laid_out(case):
        yield DEPTH
    if _ways(case, TENSOR) > 1 and geometry_of(case.stated).is_dense:
        yield FFN


@layout_rule("R118", "layout_torn", needs)
def layout_torn(case: Case) -> Iterator[Offense]:
    """Each extent against the degree that divides it, expert groups against the chips, then the heads' widths."""
    tensor, pipeline = _ways(case, TENSOR), _ways(case, PIPELINE)
    inside = case.get(EXPERT_TENSOR) or tensor
    virtual = (case.get(VIRTUAL) or 1) if pipeline > 1 else 1
    yield from _torn(case, SEQUENCE, _ways(case, CONTEXT), "context")
    if not _laid_out(case):
        even = bool(EVEN & set(case.lane.frameworks))
        yield from _torn(case, DEPTH, pipeline * virtual, "pipeline × virtual stages", even=even)
    yield from _torn(case, FFN, tensor, "tensor")
    yield from _torn(case, EXPERT_FFN, inside, "tensor inside the experts")
    yield from _torn(case, "model.shared_expert_ffn", tensor, "tensor")
    yield from _torn(case, "model.ssm_heads", tensor, "tensor")
    if case.lane.convention != "expert_in_world" and case.get(EXPERT_TENSOR) is not None:
        yield from _torn(
            case, CHIPS, case.get(EXPERT_TENSOR) * _ways(case, EXPERT) * pipeline, "expert groups × stages"
        )
    heads, width, hidden = case.get(HEADS), case.get(WIDTH), case.get(HIDDEN)
    if None not in (heads, width, hidden) and heads * width != hidden:
        what = f"{heads} heads of {width} are {heads * width} wide"
        yield Offense(HIDDEN, what, f"{hidden}, the hidden width", "check the width of a head, or leave it so", level=W)


def _ways(case: Case, path: str) -> int:
    """A degree; 1 where nobody states it, which tears nothing."""
    return degree(case.stated, case.lane, path) or 1


def _laid_out(case: Case) -> bool:
    """Whether it is stated which blocks stand on which stage."""
    layout = str(case.get(LAYOUT) or "none").strip().lower()
    return layout not in ("none", "off", "even", "false") or STAGE in (case.get("model.pattern") or "")


def _torn(case: Case, path: str, ways: int, by: str, *, even: bool = True) -> Iterator[Offense]:
    extent = case.get(path)
    if extent is not None and extent % ways:
        yield Offense(
            at=path,
            found=f"{extent:,} over {by} of {ways}",
            expected=f"a multiple of {ways}",
            do="state the degree and the width as the framework counts them, or the layout of the stages",
            level=None if even and case.lane.convention != "none" else W,
        )
