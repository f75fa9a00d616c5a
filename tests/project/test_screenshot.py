"""The README's picture is what the program draws."""

from __future__ import annotations

import io
import re
import struct
from pathlib import Path
from typing import Any

import pytest

from browser import screenshot, watched

pytestmark = pytest.mark.slow

# Of 255. Measured: 0 where it was drawn, 0.8 in a serif of the same width; 3.5 less one sentence, 11 for another week.
MAX_RATIO = 1.5
SHRUNK = 16  # pixels to one, so that the edges of letters do not count


def grey(picture: bytes) -> Any:
    """A picture from afar: shades of grey of 0 to 255, [height / SHRUNK, width / SHRUNK]."""
    import numpy
    from PIL import Image

    opened = Image.open(io.BytesIO(picture))
    small = (opened.width // SHRUNK, opened.height // SHRUNK)
    return numpy.asarray(opened.convert("L").resize(small, Image.Resampling.BOX), dtype=float)


def drawn(running: Any, page: Path) -> bytes:
    try:
        picture: bytes = screenshot.draw(running, page)
    except screenshot.NoBrowser as missing:
        pytest.skip(f"needs the font of the picture: {missing}")
    return picture


def test_the_picture_of_the_readme_is_what_the_program_draws(
    checkout: Path, chromium: Any, demo_pages: dict[str, Path]
) -> None:
    kept = grey(screenshot.PICTURE.read_bytes())
    now = grey(drawn(chromium, demo_pages["report"]))
    assert kept.shape == now.shape
    assert abs(kept - now).mean() < MAX_RATIO, "the report looks different: run `python docs/screenshot.py`, view it"


def test_another_page_would_be_noticed(checkout: Path, chromium: Any, demo_pages: dict[str, Path]) -> None:
    kept = grey(screenshot.PICTURE.read_bytes())
    other = grey(drawn(chromium, demo_pages["report-of-the-grid"]))
    assert abs(kept - other).mean() > 3 * MAX_RATIO


def test_the_readme_shows_the_picture_and_says_what_is_on_it(
    checkout: Path, chromium: Any, demo_pages: dict[str, Path]
) -> None:
    ((words, path),) = re.findall(r"!\[([^\]]*)\]\(([^)]*)\)", (checkout / "README.md").read_text(encoding="utf-8"))
    assert checkout / path == screenshot.PICTURE
    with watched(chromium, demo_pages["report"]) as seen:
        shown = seen.page.inner_text(f"#{screenshot.PLACE}")
    numbers = re.findall(r"[+-]\d+\.\d+", words)
    assert len(numbers) == 3
    assert [number for number in numbers if number not in shown] == []


def test_the_picture_is_small_enough_to_be_kept() -> None:
    picture = screenshot.PICTURE.read_bytes()
    assert len(picture) <= 150_000
    assert struct.unpack(">II", picture[16:24]) == screenshot.SIZE  # as a PNG begins
