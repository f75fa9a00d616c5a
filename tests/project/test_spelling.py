"""Pages, rules and messages are in American English."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
ROOMS: Final = ("axes", "base", "estimate", "judging", "metrics", "questions", "receipt", "stats", "workflows")
BRITISH: Final = re.compile(
    r"\b(?:colours?|behaviours?|programmes?|whilst|amongst|centres?|offences?|defences?|learnt|spelt|misspelt"
    r"|afterwards|artefacts?|analysers?"
    r"|\w*(?:synchron|initial|normal|optim|quant|serial|recogn|organ|summar|util|minim|maxim|memor|vector|token"
    r"|material|general|special|categor)is(?:e|es|ed|ing|ations?|ers?))\b",
    re.IGNORECASE,
)
# Names of fields and of functions elsewhere, in code spans, quotes or paths.
NAMES: Final = ("synchronisation", "materialisation")


def british(text: str) -> list[str]:
    """The British spellings in a text."""
    return [word for word in BRITISH.findall(text) if word.lower() not in NAMES]


def _prose(path: Path) -> Iterator[str]:
    """A page, or the comments and strings of a module."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield text
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield token.string


@pytest.mark.parametrize(
    ("folder", "pattern"),
    [
        ("docs", "*.md"),
        (".", "[!C]*.md"),
        (".", "CONTRIBUTING.md"),
        ("validators", "**/*.*"),
        *((f"receipts/{room}", "**/*.py") for room in ROOMS),
    ],
)
def test_a_reader_meets_american_spelling(folder: str, pattern: str) -> None:
    files = sorted(path for path in (ROOT / folder).glob(pattern) if path.suffix in (".py", ".md", ".toml"))
    assert files
    assert {path.name: words for path in files if (words := [w for text in _prose(path) for w in british(text)])} == {}


def test_a_british_spelling_is_seen() -> None:
    assert british("The optimiser's behaviour, summarised afterwards.")
    assert not british("The optimizer's behavior, summarized afterward. It promises precise rises.")
