"""Block patterns: their alphabets, reading, tiling to a depth, counting.

A pattern is one letter a block, such as ``AEMEAEMEAEMR``. After ``/`` comes the pattern of one multi-token-prediction
(MTP) depth, repeated once a depth; ``|`` divides pipeline stages; ``[*-]`` is a fused group, which is one block with
several sub-layers. The signs are those of Megatron-Core 0.16 and later,
``megatron/core/models/hybrid/hybrid_layer_allocation.py``. An alphabet maps letters to the kinds of block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from receipts.base.errors import Problem


class BlockKind(StrEnum):
    """What a block is, whatever letter an alphabet gives it."""

    ATTENTION = "attention"
    SPARSE_ATTENTION = "sparse attention"
    MAMBA = "mamba"
    DELTA = "gated delta net"
    RECURRENT = "recurrent"
    EXPERT = "expert"
    MLP = "mlp"


ATTENDING = frozenset({BlockKind.ATTENTION, BlockKind.SPARSE_ATTENTION})
STATEFUL = frozenset({BlockKind.MAMBA, BlockKind.DELTA, BlockKind.RECURRENT})


@dataclass(frozen=True, slots=True, eq=False)
class Alphabet:
    """Letters and what they stand for. `tiles` is whether its users repeat a pattern up to the depth."""

    name: str
    letters: Mapping[str, BlockKind]
    tiles: bool
    source: str


NAM = Alphabet(
    "nam",
    MappingProxyType(
        {
            "A": BlockKind.ATTENTION,
            "M": BlockKind.MAMBA,
            "E": BlockKind.EXPERT,
            "R": BlockKind.RECURRENT,
            "D": BlockKind.DELTA,
        }
    ),
    tiles=True,
    source="NAM56R: in NeMo A becomes *, M is M, E is E, D becomes G; R is its own block, built as M there",
)
NEMO = Alphabet(
    "nemo",
    MappingProxyType(
        {
            "*": BlockKind.ATTENTION,
            "D": BlockKind.SPARSE_ATTENTION,
            "M": BlockKind.MAMBA,
            "G": BlockKind.DELTA,
            "E": BlockKind.EXPERT,
            "-": BlockKind.MLP,
        }
    ),
    tiles=False,
    source="Megatron-Core, class Symbols of hybrid_layer_allocation.py (before 0.16 without D and G)",
)
ALPHABETS: Mapping[str, Alphabet] = MappingProxyType({NAM.name: NAM, NEMO.name: NEMO})


MTP, STAGE, OPEN, CLOSE = "/", "|", "[", "]"
STATELESS = frozenset({"dense", "moe", "sparse"})  # families whose blocks keep no state
MAX_DEPTH = 10_000  # blocks of a stack that is laid out to be compared; a depth is whatever somebody wrote
PATTERN_PATH, ALPHABET_PATH = "model.pattern", "model.alphabet"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern that was read.

    `blocks` are those of the main stack (a fused group is one), `stages` how many of them each pipeline stage
    has, `mtp` the blocks of one MTP depth.
    """

    text: str
    alphabet: str
    blocks: tuple[str, ...]
    stages: tuple[int, ...]
    mtp: tuple[str, ...] = ()
    mtp_depth: int = 0

    @property
    def letters(self) -> str:
        """The main stack's letters, without stages, fusion and MTP."""
        return "".join(self.blocks)

    def kinds(self) -> frozenset[BlockKind]:
        """The kinds of block in the main stack."""
        table = ALPHABETS[self.alphabet].letters
        return frozenset(table[letter] for letter in self.letters)


@lru_cache(maxsize=256)
def read_pattern(text: str, alphabet: str | None = None) -> Pattern | tuple[Problem, ...]:
    """The pattern that `text` states, else every problem with its position (counted from 1).

    Without an alphabet, the one that knows every letter is taken; when several do and disagree about a
    letter, that is a problem and not a guess.
    """
    if alphabet is not None:
        named = ALPHABETS.get(alphabet.strip().lower())
        if named is None:
            known = ", ".join(sorted(ALPHABETS))
            return (Problem(ALPHABET_PATH, f"no alphabet is called {alphabet!r}", f"use one of: {known}"),)
        return _read_in(text, named)
    used = {letter for letter in text if letter not in MTP + STAGE + OPEN + CLOSE}
    fitting = [each for each in ALPHABETS.values() if used <= each.letters.keys()]
    if not fitting:
        nearest = min(ALPHABETS.values(), key=lambda each: len(used - each.letters.keys()))
        return _read_in(text, nearest)
    torn = sorted(letter for letter in used if len({each.letters[letter] for each in fitting}) > 1)
    if torn:
        reason = "; ".join(f"{letter} is {each.letters[letter]} in {each.name}" for letter in torn for each in fitting)
        what = f"{text!r} reads in several alphabets: {reason}"
        return (Problem(PATTERN_PATH, what, f"state {ALPHABET_PATH}"),)
    return _read_in(text, fitting[0])


def stated_pattern(stated: Mapping[str, Any]) -> Pattern | tuple[Problem, ...] | None:
    """The pattern of stated leaves, as `read_pattern` reads it; None if they have none."""
    text = stated.get(PATTERN_PATH)
    return None if text is None else read_pattern(str(text), stated.get(ALPHABET_PATH))


def _read_in(text: str, alphabet: Alphabet) -> Pattern | tuple[Problem, ...]:
    main, *suffixes = text.split(MTP)
    accepted = f"accepted: {' '.join(alphabet.letters)}, with {STAGE} between stages and {MTP} before MTP"
    problems = [
        Problem(
            PATTERN_PATH,
            f"{letter!r} at position {position} of {text!r} is not a letter of the alphabet {alphabet.name}",
            accepted,
        )
        for position, letter in enumerate(text, start=1)
        if letter not in alphabet.letters and letter not in MTP + STAGE + OPEN + CLOSE
    ]
    if not main.replace(STAGE, ""):
        problems.append(Problem(PATTERN_PATH, f"{text!r} has no block in its main stack"))
    stages, mtp = [], tuple[str, ...]()
    for part in main.split(STAGE):
        blocks, wrong = _blocks(part, text)
        stages.append(blocks)
        problems += wrong
    if any(suffixes):
        if any(part != suffixes[0] for part in suffixes):
            problems.append(Problem(PATTERN_PATH, f"{text!r}: the MTP parts after {MTP} differ", "repeat one part"))
        if STAGE in "".join(suffixes):
            problems.append(Problem(PATTERN_PATH, f"{text!r}: {STAGE} divides the main stack only"))
        mtp, wrong = _blocks(suffixes[0], text)
        problems += wrong
    if problems:
        return tuple(problems)
    return Pattern(
        text=text,
        alphabet=alphabet.name,
        blocks=tuple(block for stage in stages for block in stage),
        stages=tuple(len(stage) for stage in stages),
        mtp=mtp,
        mtp_depth=len(suffixes) if mtp else 0,
    )


def _blocks(part: str, text: str) -> tuple[tuple[str, ...], list[Problem]]:
    blocks: list[str] = []
    problems: list[Problem] = []
    group: str | None = None
    for letter in part:
        if letter == OPEN:
            if group is not None:
                problems.append(Problem(PATTERN_PATH, f"{text!r}: a fused group inside a fused group"))
            group = ""
        elif letter == CLOSE:
            if group is None or len(group) < 2:
                problems.append(Problem(PATTERN_PATH, f"{text!r}: {CLOSE} closes no group of two or more blocks"))
            blocks.append(group or "")
            group = None
        elif group is not None:
            group += letter
        else:
            blocks.append(letter)
    if group is not None:
        problems.append(Problem(PATTERN_PATH, f"{text!r}: {OPEN} is not closed before the stage or part ends"))
    return tuple(blocks), problems


@lru_cache(maxsize=256)
def shortest_tile(text: str, depth: int) -> str:
    """The shortest text that makes the same stack of `depth` blocks as `text`; with stages, groups or MTP, `text`.

    AEMEAEMEAEMR, the same written twice, and its 52 letters make one stack of 52.
    """
    if not text or depth > MAX_DEPTH or any(sign in text for sign in (MTP, STAGE, OPEN, CLOSE)):
        return text
    stack = (text * -(-depth // len(text)))[:depth]
    for length in range(1, min(len(text), depth)):
        if stack == (stack[:length] * -(-depth // length))[:depth]:
            return stack[:length]
    return stack[: len(text)]


def counts(pattern: Pattern, depth: int | None) -> Mapping[str, int]:
    """Blocks by letter in a main stack of `depth` blocks (as written where None), only letters that occur.

    AEMEAEMEAEMR at 52 is 13 A, 13 M, 22 E and 4 R.
    """
    # Counted by whole tiles: a depth is whatever somebody wrote, and no stack of that height is laid out.
    tiles, rest = divmod(len(pattern.blocks) if depth is None else depth, len(pattern.blocks))
    whole, part = "".join(pattern.blocks), "".join(pattern.blocks[:rest])
    letters = ALPHABETS[pattern.alphabet].letters
    totals = {letter: tiles * whole.count(letter) + part.count(letter) for letter in letters}
    return MappingProxyType({letter: count for letter, count in totals.items() if count})


def kind_counts(pattern: Pattern, depth: int | None) -> Mapping[BlockKind, int]:
    """Blocks by kind, as `counts`; this is what a FLOPs formula sums over."""
    table = ALPHABETS[pattern.alphabet].letters
    return MappingProxyType({table[letter]: count for letter, count in counts(pattern, depth).items()})


def family_of(text: str, alphabet: str | None = None) -> str | None:
    """The family that a pattern's blocks show; None if the text does not read."""
    pattern = read_pattern(text, alphabet)
    if not isinstance(pattern, Pattern):
        return None
    kinds = pattern.kinds()
    if kinds & STATEFUL:
        return "hybrid" if kinds & ATTENDING else "ssm"
    return "moe" if BlockKind.EXPERT in kinds else "sparse" if BlockKind.SPARSE_ATTENTION in kinds else "dense"


def contradiction(pattern: Pattern, family: str) -> str:
    """Why `family` cannot be the family of this pattern; empty if the pattern allows it.

    Families overlap, so only what a word denies or promises is held against it: a hybrid with experts may
    be called `moe`, and attention that a letter does not call sparse may be `sparse`.
    """
    kinds = pattern.kinds()
    attends, keeps, routes = kinds & ATTENDING, kinds & STATEFUL, BlockKind.EXPERT in kinds
    wrong = {
        "dense": "it has expert blocks" if routes else _has(keeps),
        "moe": "" if routes else "it has no expert block",
        "hybrid": "" if attends and keeps else "it does not mix attention with state-space blocks",
        "ssm": _has(attends) if keeps else "it has no state-space block",
        "sparse": "" if attends or routes else "it has neither attention nor expert blocks",
    }
    return wrong.get(family, f"{family!r} is not a family")


def _has(kinds: frozenset[BlockKind]) -> str:
    return f"it has {' and '.join(sorted(kinds))} blocks" if kinds else ""
