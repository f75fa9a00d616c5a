"""Draws the README's picture of the weekly report: ``python docs/screenshot.py``, or ``--out PICTURE.png``.

Runs the demo (`examples/demo.sh`) in a folder of its own and opens its report in Chromium, 1280 pixels wide. Needs what
`requirements/browser.txt` holds and a Chromium: the one on the path, or the one that `RECEIPTS_CHROMIUM` names.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "images" / "weekly.png"
# What a reader on Monday sees first, down to the first lane.
PLACE = "summary"
SIZE = (1280, 880)
COLORS = 128
# The page takes its reader's font. A picture that is to be compared names one: another wraps lines elsewhere.
FONT = "DejaVu Sans"
STYLE = f'body {{ font-family: "{FONT}", sans-serif }} code {{ font-family: "{FONT} Mono", monospace }}'
HAS_FONT = """name => {
  const context = document.createElement("canvas").getContext("2d");
  const width = other => { context.font = `64px "${name}", ${other}`; return context.measureText("receipts").width; };
  return width("serif") === width("monospace");
}"""
NAMES = ("chromium", "chromium-browser", "google-chrome")


class NoBrowser(Exception):
    """There is no browser here, nothing to drive it, or not its font; the message says what is missing."""


def driver() -> tuple[str, Any]:
    """The path of a Chromium, and what Playwright begins with. Raises NoBrowser."""
    named = os.environ.get("RECEIPTS_CHROMIUM")
    path = named or next((path for path in map(shutil.which, NAMES) if path), None)
    if not path:
        raise NoBrowser("no Chromium on the path; install `chromium`, or name one in RECEIPTS_CHROMIUM")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise NoBrowser("no Playwright; run `pip install -r requirements/browser.txt`") from None
    return path, sync_playwright


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """A running Chromium, as Playwright's Browser. Raises NoBrowser."""
    path, begin = driver()
    # Chromium's sandbox refuses to run as root; what is opened is a file that was just written here.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with begin() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=arguments)
        try:
            yield running
        finally:
            running.close()


def demo(folder: Path) -> dict[str, Path]:
    """Run the demo in `folder`. Its pages by the names of their folders; `report` is the week's own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "RECEIPTS_"))}
    environment["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment["HOME"] = str(folder)
    out = folder / "demo"
    command = ["sh", str(ROOT / "examples" / "demo.sh"), str(out)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {ran.returncode}:\n{ran.stdout[-2000:]}{ran.stderr}")
    return {path.parent.name: path for path in sorted(out.glob("*/index.html"))}


def draw(running: Any, page: Path) -> bytes:
    """The top of a page, with `PLACE`, as a PNG of `SIZE` pixels, in few colors, since it is kept with the sources.

    Raises NoBrowser where the machine has no such font as the picture is drawn in.
    """
    from PIL import Image

    width, height = SIZE
    opened = running.new_page(viewport={"width": width, "height": height}, color_scheme="light")
    try:
        opened.goto(page.as_uri())
        if not opened.evaluate(HAS_FONT, FONT):
            raise NoBrowser(f"no font {FONT}; install `fonts-dejavu-core`")
        opened.add_style_tag(content=STYLE)
        shot = Image.open(io.BytesIO(opened.screenshot(type="png")))
    finally:
        opened.close()
    packed = io.BytesIO()
    shot.convert("RGB").quantize(COLORS, dither=Image.Dither.NONE).save(packed, "png", optimize=True)
    return packed.getvalue()


def main(arguments: list[str] | None = None) -> int:
    """Draw the picture; 2 where there is no browser."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PICTURE, help="where the picture goes (default: %(default)s)")
    out: Path = parser.parse_args(arguments).out
    try:
        with tempfile.TemporaryDirectory() as folder, browser() as running:
            drawn = draw(running, demo(Path(folder))["report"])
    except NoBrowser as missing:
        print(f"screenshot: {missing}", file=sys.stderr)
        return 2
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(drawn)
    print(f"{out}: {SIZE[0]} × {SIZE[1]}, {len(drawn) / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
