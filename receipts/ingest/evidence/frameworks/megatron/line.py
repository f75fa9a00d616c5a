"""One Megatron iteration line: cells of any order between bars, as every version and fork since 2020 prints them.

Source: `training_log` in megatron/training/training.py, v1.0 to core 0.20, and its forks (Megatron-Bridge,
Megatron-DeepSpeed, argonne-lcf's ``key=value`` form, GPT-NeoX, AMD's pairs of a current and an average figure).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from receipts.ingest import vocabulary
from receipts.ingest.literals import FIGURE
from receipts.ingest.record import Form
from receipts.ingest.vocabulary import Label

DATE: Final = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(\.\d{1,6})?\] *$")
# A date that was taken out of a document keeps its form: [xxxx-xx-xx xx:xx:xx].
CLOCK: Final = re.compile(r"[\w?*]{2}:[\w?*]{2}:[\w?*]{2}")
RANK: Final = re.compile(r"\[(?:rank|default) ?(\d{1,7})\]:|^ *(\d{1,7}): ")
# Cells that only forks of Megatron-DeepSpeed (and GPT-NeoX, which comes from one) print.
DEEPSPEED: Final = re.compile(
    r"(?:consumed.tokens|samples.per.second|(?:\[(?:lm|ds)\] ?)?tflops|(?:actual|curriculum).seqlen"
    r"|approx.flops.per.gpu|elapsed.time.per.iteration(?: \(s\)|.ms)) *[:=]|lm-loss:",
    re.IGNORECASE,
)
LONG_RATE: Final = re.compile(r"learning.rate *[:=] *\d\.\d{6}E")
# Losses of several depths of prediction.
DEPTHS: Final = re.compile(r"\| *mtp[ _]")
REINFORCEMENT: Final = re.compile(r"\| *(?:rl |grpo|rollout)", re.IGNORECASE)
LABELS: Final = vocabulary.line("megatron")

# A record's head: `iteration       12/    1000 |`, or `iteration=      12/ 1000 |`; NeMo's follows an epoch.
ITERATION: Final = Form(
    re.compile(r"(?<!, )iteration *=? *(?P<step>\d{1,12}) */ *\d{1,15}(?!\d)"),
    (
        # Before v1.0 nothing stood between a label and its figure but a blank.
        re.compile(
            rf"\|\s*(?P<label>[^|:=\s][^|:=]{{0,80}}?)(?:\s*[:=]\s*|\s+(?={FIGURE}\s*(?:\||$)))"
            rf"(?P<word>{FIGURE})(?P<unit>%|[GTP]FLOPS)?",
            re.IGNORECASE,
        ),
    ),
    end=re.compile(
        r".*?(?:number[ _]of[ _]skipped[ _]iterations *[:=] *\d.*(?:\|\s*|[:=] *[^|\s][^|]*)$|memory \()", re.IGNORECASE
    ),
)
FIRST_RANK: Final = "Step Time"
# Printed by the first rank, and the iteration by the last, so that either may come first.
STEP_TIME: Final = Form(
    re.compile(r"(?<!Average )(?=Step Time *:)"),
    (re.compile(rf"(?P<label>Step Time|GPU utilization) *: *(?P<word>{FIGURE})"),),
)
# Forks call tokens a second by many names: `tokens/s/gpu inst/harmonic mean`, `tokens per second per gpu (tok/s/gpu)`.
_TOKENS: Final = re.compile(r"tok(?:en)?s?(?:/s| per s|.{0,40}\((?:tok|token|tokens)/s)")
_CHIP: Final = re.compile(r"\b(?:gpu|npu|device|chip|card)s?\b")
_AUXILIARY: Final = re.compile(r"\b(?:mtp|balanc|load|z loss|aux|scale|valid|test|eval|indexer|sop|kd|distill)")


def normal(label: str) -> str:
    """A label in small letters with single blanks: ``tokens_per_gpu_per_second_tgs``, ``lm-loss`` and others meet."""
    return " ".join(label.lower().replace("_", " ").replace("-", " ").split())


@lru_cache(maxsize=4096)
def known(word: str) -> Label | None:
    """What a label's figure is; None where it is not kept."""
    label = normal(word)
    match = LABELS.get(label) or LABELS.get(label.removesuffix(" %"))
    if match is not None:
        return match
    if _TOKENS.match(label):
        return Label("tokens_per_second_per_chip" if _CHIP.search(label) else "tokens_per_second")
    return Label("loss") if label.endswith("loss") and not _AUXILIARY.search(label) else None


def closed(label: str, word: str) -> bool:
    """Whether a last cell without a bar was printed to its end: the formats have a fixed number of decimals."""
    label = normal(label)
    if label.startswith("number of") or label == "global batch size":
        return label.startswith("number of nan")
    if label.endswith("loss"):
        return re.search(r"[eE][-+]\d\d$|\.\d{5,6}$", word) is not None
    if label in {"grad norm", "samples per second"}:
        return re.match(r"\d+\.\d{3}$|nan|inf", word) is not None
    return re.match(r"\d+\.\d", word) is not None
