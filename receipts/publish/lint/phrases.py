"""Statements that a verb makes: halved the step time, runs out of memory, fits in."""

from __future__ import annotations

import re
from collections.abc import Iterator

from receipts.publish.lint import cues
from receipts.publish.lint.cues import Sentence, nearest
from receipts.publish.lint.inline import CODE
from receipts.publish.lint.quantity import bound_before, quantities
from receipts.publish.lint.sense import ARTICLE, PERFORMANCE, SOFT
from receipts.publish.lint.statement import MIRRORED, Direction, StatementDraft

_FACTORS = {"doubl": 2.0, "tripl": 3.0, "quadrupl": 4.0, "halv": 0.5}
_FACTOR = re.compile(
    rf"\b(?:(?P<verb>doubl|tripl|quadrupl|halv)(?:e[sd]?|ing)\s{ARTICLE}{PERFORMANCE}\b"
    rf"|{PERFORMANCE}\s(?:(?:has|was|were|is)\s)?{SOFT}(?P<passive>doubl|tripl|quadrupl|halv)e[sd]\b)",
    re.IGNORECASE,
)
_QUALIFIED = re.compile(
    r"(?<![\w-])(?:MBS|micro[-_ ]?batch(?:es)?(?:[_ ]size)?|batch(?:es)?(?:[_ ]size)?|bs|GBS|"
    r"seq(?:uence)?(?:[-_ ]?len(?:gth)?)?|context|depth|EP|TP|PP)"
    r"\s?(?:=|of|at|is)?\s?(\d[\d,]*[kK]?)(?!\w|\.\d)|"
    r"(?<![\w.,])(\d[\d,]*[kK]?)[\s-](?:context|sequence(?: length)?)\b",
    re.IGNORECASE,
)
_OOM = re.compile(
    r"\b(?:no OOMs?\b|(?:does not|doesn't|did not|didn't|never) OOM\b|OOM(?:s|ed|ing)?\b|OOM'(?:s|ed|d)\b|"
    r"r[ua]n(?:s|ning)? out of (?:memory|HBM|VRAM|device memory)|out[- ]of[- ]memory (?:error|failure)s?|"
    r"(?:goes|went|go|going|dies|died) (?:out of memory|OOM)|exceed(?:s|ed|"
    r"ing)? (?:the )?(?:[\d.,]+ ?[GT]i?B )?(?:of )?(?:device |GPU |HBM |chip )?(?:memory|HBM|VRAM|"
    r"limit)(?: of \w+)?)",
    re.IGNORECASE,
)
_HAPPENED = re.compile(
    r"\b(?:dies|died|hits?|got|gets|gives|gave|crash\w*|ends?|ended|fails?|"
    r"failed)\s(?:\w+\s){0,3}$|(?::|=|→|->|—|–)\s?\W?$",
    re.IGNORECASE,
)
# Cheap looks before the long patterns: most sentences hold none of these.
_FACTOR_WORD = re.compile(r"doubl|tripl|quadrupl|halv", re.IGNORECASE)
_FIT_WORD = re.compile(r"OOM|memory|fit|exceed|out of|ceiling|limit|maximum", re.IGNORECASE)
_CODE = re.compile(CODE)
_FITS = re.compile(
    r"\b(?P<no>(?:does|do|did|would|could|can|will)\s?(?:n['’]t|not) (?:even )?fit|cannot fit|"
    r"can['’]t fit|no longer fits?|never fit(?:s)?)\b(?P<where>[^.;,]{0,12}?\b(?:in|into|on|"
    r"within)?\b[^.;,]{0,25}?[\d.]+ ?[GT]i?B)?"
    r"|\b(?:fits?|fitted) (?:comfortably |easily |just |barely |well )?(?:in|into|within|inside|"
    r"under|on)\b[^.;,]{0,30}?[\d.]+ ?[GT]i?B\b"
    r"|\bfits\b(?=\W*$|\W*[,;.]|\s(?:for me|again|now|fine|and|with|but|on|at)\b)",
    re.IGNORECASE,
)
_ON_CHIP = re.compile(rf"\s(?:on|in|into|within)\s(?:an?\s|one\s|single\s|\d+\s?[x×]?\s?)*{cues.CHIP_NAME}(?:-\d+)?")
_BEFORE = re.compile(r"\bbefore\s(?:(?:an?|it|hitting|the)\s)*$", re.IGNORECASE)
# A limit is a fact only where somebody tried it: that of a context is the model's design.
_CEILING = re.compile(
    r"\b(?:validated|measured|verified|tested|proven)\s(?:ceiling|limit|maximum)\s(?:is|was|of|at)\s"
    r"(?P<number>\d[\d,]*[kKM]?)\stokens\b",
    re.IGNORECASE,
)
_GENERIC = re.compile(
    r"\b(?:handl\w+|ladder|detect\w*|class(?:es|ify)?|retry|retries|if|when(?:ever)?|whether|"
    r"avoid\w*|prevent\w*|risk\w*|an OOM|on OOM|OOMs? (?:are|is|can|may|killer|report\w*|check\w*|"
    r"errors? (?:are|is))|why)\b",
    re.IGNORECASE,
)


def verbs(sentence: Sentence) -> Iterator[StatementDraft]:
    """Factors that a verb says of a metric beside it: `halves the step time`, `throughput doubled`."""
    if not _FACTOR_WORD.search(sentence.text):
        return
    for match in _FACTOR.finditer(sentence.text):
        value = _FACTORS[(match["verb"] or match["passive"]).lower()]
        cue = cues.METRIC_CUE.search(match[0])
        metric = (cue.lastgroup if cue else None) or "tokens_per_second"
        half = value / 4.0 if value > 1.0 else 0.05
        direction: Direction = "down" if value < 1.0 else "up"
        bound = bound_before(sentence.text, match.start(match.lastgroup or 0))
        bound = bound if value > 1.0 else MIRRORED.get(bound, bound)
        yield StatementDraft(match.start(), match.end(), "ratio", metric, (value,), "×", direction, (half,), bound)


def fits(sentence: Sentence) -> Iterator[StatementDraft]:
    """Shapes that fit in memory or do not. Talk of out-of-memory failures that names no shape is no statement."""
    text = sentence.text
    if not _FIT_WORD.search(text):
        return
    for match in _OOM.finditer(text):
        away = _shape_away(sentence, match)
        generic, _ = nearest(sentence, match.start(), match.end(), _GENERIC)
        # A bare noun is most often the topic; what happened is shown by a verb, or by the shape right beside it.
        noun = re.fullmatch(r"OOMs?|out[- ]of[- ]memory \w+", match[0], re.IGNORECASE) is not None
        happened = noun and _HAPPENED.search(text, 0, match.start()) is not None
        if away > (25 if noun and not happened else 70) or generic < min(away, 30):
            continue
        good = re.match(r"no |does|did|never", match[0], re.IGNORECASE)
        yield _fit(sentence, match, "up" if good or _BEFORE.search(text, 0, match.start()) else "down")
    for match in _FITS.finditer(text):
        chip = _ON_CHIP.match(text, match.end())
        if chip and _shape_away(sentence, match) > 60:
            yield StatementDraft(
                match.start(), chip.end(), "fit", "fit_on_chip", (), "", "down" if match["no"] else "up"
            )
            continue
        limit = any(item.dimension == "bytes" for item in quantities(match[0]))
        if not limit and _shape_away(sentence, match) > 60:
            continue
        yield _fit(sentence, match, "down" if match["no"] else "up")
    for match in _CEILING.finditer(text):
        (most,) = quantities(match["number"])
        yield StatementDraft(
            match.start(), match.end(), "reading", "largest_fit", most.values, "tokens", "none", most.halves
        )


def _shape_away(sentence: Sentence, match: re.Match[str]) -> int:
    """The distance of the nearest shape: a batch or a sequence with its number, inline code, or a size in bytes."""
    shape, _ = nearest(sentence, match.start(), match.end(), _QUALIFIED)
    code, _ = nearest(sentence, match.start(), match.end(), _CODE)
    sizes = [
        sentence.distance(match.start(), match.end(), (item.start, item.end))
        for item in quantities(sentence.text)
        if item.dimension == "bytes"
    ]
    return min(shape, code, *sizes, 10_000)


def _fit(sentence: Sentence, match: re.Match[str], direction: Direction) -> StatementDraft:
    """The statement with its limit in bytes, or else with the number of the shape that is nearest."""
    text = sentence.text
    limit = [item for item in quantities(match[0]) if item.dimension == "bytes"]
    if limit:
        return StatementDraft(
            match.start(), match.end(), "fit", "peak_bytes", limit[0].values, limit[0].unit, direction, limit[0].halves
        )
    end = match.end()
    after = re.compile(rf"\s(?:at|with|on|for|beyond|from|in) (?:a )?{_QUALIFIED.pattern}", re.IGNORECASE).match(
        text, end
    )
    if after:
        end = after.end()
    away, shape = nearest(sentence, match.start(), match.end(), _QUALIFIED)
    if shape is None or away >= 60:
        return StatementDraft(match.start(), end, "fit", "outcome", (), "", direction)
    number = (shape[1] or shape[2]).replace(",", "").lower()
    # `32K` tokens are 32,768, and may be 32,000.
    value = float(number.rstrip("k")) * (1012.0 if number.endswith("k") else 1.0)
    half = value * 12.0 / 1012.0 if number.endswith("k") else 0.0
    unit = re.split(r"[\s=]?\s?(?:=|of|at|is)?\s?\d", shape[0])[0].strip() if shape[1] else "seq"
    return StatementDraft(match.start(), end, "fit", "outcome", (value,), unit, direction, (half,))
