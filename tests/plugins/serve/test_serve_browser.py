"""The server's pages in a real browser: no fault of axe, whole at any width, by keyboard, nothing from outside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import report_store
from browser import WCAG, Watched, faults, overflow, watched
from thorough import unless_thorough

if TYPE_CHECKING:
    from receipts.plugins.serve.server import Server

pytestmark = pytest.mark.slow

EVERY = report_store.everything()
A, B, HOSTILE = EVERY[0].id, EVERY[4].id, EVERY[6].id
CLAIM = f"""schema_version = "1.0"
[[claim]]
id = "kept"
kind = "speedup"
text = "4 threads are faster"
effect = "at least 1.1"
baseline = ["{A}"]
candidate = ["{B}"]
"""
PAGES = {
    "frontier": "/",
    "runs": "/runs",
    "run": f"/runs/{A}",
    "hostile run": f"/runs/{HOSTILE}",
    "compare": f"/compare?a={A}&b={B}",
    "sweep": f"/compare?run={B}&run={A}&run={EVERY[8].id}",
    "nothing to compare": "/compare",
    "one side": f"/compare?b={A}",
    "rejected": f"/compare?a={A}&b={HOSTILE}",
    "failures": "/failures?lane=cpu-torch&plan=@golden",
    "inbox": "/inbox",
    "histories": "/histories",
    "history": f"/histories?receipt={A}",
    "lines": "/histories?lane=cpu-torch",
    "nothing to bridge": "/bridge",
    "bridge": f"/bridge?a={A}&b={HOSTILE}",
    "claims": "/claims",
    "claim": "/claims/kept",
    "decisions": "/decisions",
    "reports": "/reports",
    "login": "/login",
    "not there": "/runs/nothing",
}
WIDTHS = (1280, 400)
AUDITED = WIDTHS[unless_thorough(1, 0) :]  # axe takes seconds a page, and sees most at the narrow width


@pytest.fixture(params=PAGES)
def seen(request: pytest.FixtureRequest, chromium: Any, listening: str, server: Server) -> Iterator[Watched]:
    if "claim" in request.param:
        server.store().add_claims(CLAIM.encode())
    with watched(chromium, f"{listening}{PAGES[request.param]}") as page:
        page.page.evaluate("document.querySelectorAll('details').forEach(item => { item.open = true })")
        yield page


def test_a_page_has_no_fault_at_either_width_and_asks_for_nothing_else(seen: Watched) -> None:
    for width in WIDTHS:
        seen.width(width)
        assert (width, overflow(seen)) == (width, [])
        assert width not in AUDITED or (width, faults(seen, WCAG)) == (width, [])
    seen.page.wait_for_load_state("networkidle")
    assert seen.requests == [seen.page.url]
    assert [item for item in seen.said if not item.startswith("verbose") and "404" not in item] == []


def test_a_keyboard_ticks_two_runs_and_compares_them(chromium: Any, listening: str) -> None:
    with watched(chromium, f"{listening}/runs") as seen:
        page, ticked = seen.page, 0
        for _ in range(100):
            page.keyboard.press("Tab")
            focused = page.evaluate("[document.activeElement.type, document.activeElement.textContent]")
            if focused[0] == "checkbox" and ticked < 2:
                page.keyboard.press("Space")
                ticked += 1
            if focused[1] == "Compare what is ticked":
                page.keyboard.press("Enter")
                break
        assert ticked == 2
        page.wait_for_url("**/compare?**")
        assert page.locator("#launches").is_visible()


def test_an_open_list_follows_the_store_unless_something_is_ticked(
    chromium: Any, listening: str, server: Server
) -> None:
    with watched(chromium, f"{listening}/runs") as seen:
        page = seen.page
        page.clock.install()
        page.reload()

        def later() -> None:
            with page.expect_response("**/live"):
                page.clock.run_for(5000)

        later()
        page.locator("main input[type=checkbox]").first.check()
        server.store().opened.pin("news", A)
        later()
        assert page.locator("text=@news").count() == 0
        page.locator("main input[type=checkbox]").first.uncheck()
        page.evaluate("document.activeElement.blur()")
        later()
        page.wait_for_selector("text=@news")
