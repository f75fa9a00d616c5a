"""Words of change: what each says of its metric, by its form. The patterns that read such words are made of this table.

A rate that is faster and a time that is shorter are both *better*; more and less are said of the number itself.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

# `level` is the ratio itself: `half the memory`, `twice as long`.
Sense = Literal["up", "down", "better", "worse", "equal", "level"]


class ChangeWords(NamedTuple):
    """Words of one sense, as alternatives of a pattern."""

    sense: Sense
    verbs: str
    nouns: str
    comparatives: str

    @property
    def every(self) -> str:
        """All forms."""
        return f"{self.verbs}|{self.nouns}|{self.comparatives}"


DOWN: Final = ChangeWords(
    "down",
    r"cut\w*|reduc\w+|shr[aiu]nks?|lower(?:s|ed|ing)|fell|fall(?:s|en|ing)?|drop\w*|decreas\w*|declin\w*|"
    r"sav(?:e[sd]?|ing)|shav\w*|trim\w*|los(?:t|es?|ing)|slash\w*|frees?|freed",
    r"reductions?|savings?|decreases?|drops?|cuts?",
    r"less|lower|fewer|shorter|smaller",
)
UP: Final = ChangeWords(
    "up",
    r"r[io]se[sn]?|rising|increas\w*|grew|grow[sn]?|climb\w*|jump\w*|rais\w*|add(?:s|ed)",
    r"increases?|growth",
    r"more|higher|longer|larger|bigger|greater",
)
BETTER: Final = ChangeWords(
    "better",
    r"improv\w*|gain\w*|boost\w*|outperform\w*|accelerat\w*|beats?|recover\w*|regain\w*",
    r"improvements?|gains?|boosts?|wins?",
    "better",
)
WORSE: Final = ChangeWords(
    "worse", r"regress\w*|degrad\w*", r"regressions?|overheads?|penalt(?:y|ies)|degradations?", "worse"
)
# Of a rate; right behind a number they say which way it went.
FASTER: Final = ChangeWords("better", r"speeds?\sup|sped\sup", r"speed-?ups?", "faster|quicker")
SLOWER: Final = ChangeWords("worse", r"slow(?:s|ed|ing)?[\s-]?down\w*|slow(?:s|ed)", r"slow-?downs?", "slower")
CHANGES: Final = (FASTER, SLOWER, BETTER, WORSE, DOWN, UP)
AMOUNTS: Final = f"{DOWN.comparatives}|{UP.comparatives}"
COMPARATIVES: Final = "|".join(row.comparatives for row in CHANGES)
NOUNS: Final = "|".join(row.nouns for row in CHANGES)
