"""What the tests in a real browser share: a running Chromium, the demo's pages, and a page that is watched."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
WCAG = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
OVERFLOW = """() => {
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= wide) return [];
  return [...document.querySelectorAll("body *")].filter(item => item.getBoundingClientRect().right > wide + 1)
    .map(item => `${item.tagName} ${item.className} ${item.textContent.trim().slice(0, 60)}`).slice(0, 5)
    .concat(`the page is ${document.documentElement.scrollWidth} wide, its window ${wide}`);
}"""


def _screenshot() -> ModuleType:
    """``docs/screenshot.py``, loaded from its file: it starts the browser and runs the demo for the picture, too."""
    spec = importlib.util.spec_from_file_location("docs_screenshot", ROOT / "docs" / "screenshot.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


screenshot = _screenshot()


@pytest.fixture(scope="session")
def browser_found() -> None:
    """Skips where there is no Chromium, or nothing to drive it."""
    try:
        screenshot.driver()
    except screenshot.NoBrowser as missing:
        pytest.skip(f"needs a browser: {missing}")


@pytest.fixture(scope="module")
def chromium(browser_found: None) -> Iterator[Any]:
    """A running Chromium.

    Of a module's life only: while Playwright runs, no other test of the process can have an event loop.
    """
    with screenshot.browser() as running:
        yield running


@pytest.fixture(scope="session")
def demo_pages(browser_found: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages that `make demo` ends with, by the names of their folders."""
    found: dict[str, Path] = screenshot.demo(tmp_path_factory.mktemp("demo"))
    return found


@dataclass
class Watched:
    """A page in a browser, and what it did unasked: requests beside its own file, and what it said or threw."""

    page: Any
    requests: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def media(self, **features: str) -> None:
        """Show it in print, or in the dark."""
        self.page.emulate_media(**features)

    def width(self, pixels: int) -> None:
        """Show it that wide."""
        self.page.set_viewport_size({"width": pixels, "height": 900})


@contextlib.contextmanager
def watched(running: Any, path: Path | str, **options: Any) -> Iterator[Watched]:
    """A page opened from its file or URL, in a context of its own that is given `options`."""
    context = running.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    context.set_default_timeout(10_000)
    try:
        seen = Watched(context.new_page())
        page = seen.page
        page.on("request", lambda request: seen.requests.append(request.url))
        page.on("console", lambda message: seen.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: seen.said.append(f"error: {error}"))
        # A dialog that nobody answers would hold everything up.
        page.on("dialog", lambda dialog: (seen.said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.goto(path if isinstance(path, str) else path.as_uri())
        yield seen
    finally:
        context.close()


def overflow(seen: Watched) -> list[str]:
    """What is wider than the window."""
    wide: list[str] = seen.page.evaluate(OVERFLOW)
    return wide


def faults(seen: Watched, rules: dict[str, Any]) -> list[str]:
    """What these rules of axe-core say against the page as it is shown now."""
    from axe_playwright_python.sync_playwright import Axe

    options = {"runOnly": rules, "resultTypes": ["violations"]}
    # Nobody follows a link on paper: there it need not look like one.
    options["rules"] = {"link-in-text-block": {"enabled": not seen.page.evaluate("matchMedia('print').matches")}}
    ran = Axe().run(seen.page, options=options).response
    assert "color-contrast" in {item["id"] for item in (*ran["passes"], *ran["violations"])}
    return [
        f"{item['id']}: {node['html'][:200]} {node['failureSummary']}"
        for item in ran["violations"]
        for node in item["nodes"][:3]
    ]


def renamed(value: Any, name: str) -> Any:
    """A report's values with every receipt called `name`, past what the receipt's schema would let in."""
    if hasattr(value, "_fields"):
        return type(value)(*(renamed(item, name) for item in value))
    if isinstance(value, tuple):
        return tuple(renamed(item, name) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        found = {item.name: renamed(getattr(value, item.name), name) for item in dataclasses.fields(value) if item.init}
        if type(value).__name__ == "Ref":
            found["name"] = name
        return dataclasses.replace(value, **found)
    return value
