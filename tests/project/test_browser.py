"""The report in a real browser: whole at every width, by keyboard, in the dark, on paper, whatever a label says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import report_store as week
import rule_cases as cases
from browser import WCAG, Watched, faults, overflow, renamed, watched
from receipts.cli import main
from receipts.publish.report.render import render
from receipts.questions.week.collect import collect
from receipts.questions.week.interval import Week, moment
from thorough import unless_thorough

pytestmark = pytest.mark.slow

HOSTILE = ("hostile", "10 kB", "lane", "comparison", "claim")
PAGES = unless_thorough(("report", "hostile"), ("report", "report-of-the-grid", *HOSTILE))
WIDTHS = (320, 400, 768, 769, 1000, 1152, 1153, 1280, 1920)
PAPER = 700  # CSS pixels between the margins of A4 that the style asks for
ATTACK = (
    "\x00\u202e\u2066<script>window.hurt = 1</script></title></style></textarea><img src=x onerror='window.hurt = 2'>"
    "<svg onload=window.hurt=3>\" onfocus=window.hurt=4 autofocus x=\"' style='position:fixed;inset:0'"
    "<iframe src=javascript:parent.hurt=5></iframe>{{ 7 * 7 }}<!--<base href=//example.com/>]]>\u05d0\u0627"
)
CLAIM = """schema_version = "1.0"

[[claim]]
id = "hostile"
text = {0}
kind = "speedup"
baseline = ["{1}"]
candidate = ["{2}"]
axis = "flags.OMP_NUM_THREADS"
effect = "1.2x"
quoted_in = ["a <b>page</b>.md"]
"""
COLOURS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}

DEAD_LINKS = """() => [...document.querySelectorAll("a[href]")].map(link => link.getAttribute("href"))
  .filter(target => !target.startsWith("#") || !document.getElementById(target.slice(1)))"""
OPEN = """() => document.querySelectorAll("details").forEach(item => { item.open = true })"""
SHEETS = 12  # that a busy week has at most, every fold open but the receipts and rules behind it
REACHABLE = """() => [...document.querySelectorAll("a[href], summary")].filter(item => item.checkVisibility())
  .map(item => item.outerHTML)"""
FOCUSED = """() => {
  const item = document.activeElement, box = item.getBoundingClientRect();
  const shown = box.width > 0 && box.right > 0 && box.left < innerWidth && box.bottom > 0 && box.top < innerHeight;
  return [item.outerHTML, shown && getComputedStyle(item).outlineStyle !== "none"];
}"""
# axe-core does not look into pictures: their words have to stand out from the page as other words do (WCAG 2, 1.4.3),
# what is drawn less so (1.4.11). A grid is there to be overlooked.
PALE = """([words, marks]) => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = colour => {
    canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = colour => rgb(colour).slice(0, 3).map(part => part / 255)
    .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const paper = light(getComputedStyle(document.documentElement).backgroundColor);
  const ratio = colour => (Math.max(light(colour), paper) + 0.05) / (Math.min(light(colour), paper) + 0.05);
  const style = getComputedStyle(document.documentElement);
  const faults = [...document.querySelectorAll("figure svg text")].filter(item => item.checkVisibility())
    .map(item => [ratio(getComputedStyle(item).fill), item.textContent]).filter(([found]) => found < words);
  for (let index = 1; style.getPropertyValue(`--mark-${index}`); index++) {
    const found = ratio(style.getPropertyValue(`--mark-${index}`));
    if (found < marks) faults.push([found, `--mark-${index}`]);
  }
  return faults;
}"""


@pytest.fixture(scope="module")
def pages(demo_pages: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The demo's reports, and every kind of report of a store whose labels are as hostile as a receipt may hold."""
    folder = tmp_path_factory.mktemp("hostile")
    fields = ("run.label", "model.name", "run.context")
    attacked = week.one("x", {**week.day(6), **week.THREADS, **dict.fromkeys(fields, ATTACK)}, {"seconds": 0.6})
    oom = week.one("y", {**week.day(6), **week.OOM, "run.label": ATTACK, "failure.operator": ATTACK})
    base = week.everything()
    store = week.fill(folder / "store.sqlite", [*base, *attacked, *oom])
    data = collect(store, cases.rulebook(), Week.parse(week.WEEK), moment(week.AS_OF))
    # Past what the receipt's schema lets in.
    made = {"hostile": data, "10 kB": renamed(data, (ATTACK * 30)[:5000] + "w" * 5000)}
    found = dict(demo_pages)
    for name, values in made.items():
        found[name] = folder / f"{name}.html"
        found[name].write_bytes(render(values, cases.rulebook().rules)["index.html"])
    ids = [base[0].id, attacked[0].id]
    (folder / "claims.toml").write_text(CLAIM.format(json.dumps(ATTACK), *ids), encoding="utf-8")
    assert main(["--store", str(folder / "store.sqlite"), "claim", "add", str(folder / "claims.toml")]) in (0, 1, 3)
    for name, words in {
        "lane": ("lane", attacked[0].receipt.run.lane),
        "comparison": ("compare", *ids),
        "claim": ("claim", "hostile"),
    }.items():
        command = ["--store", str(folder / "store.sqlite"), "report", *words, "--out", str(folder / name)]
        assert main(command) == 0
        found[name] = folder / name / "index.html"
    return found


BUSY = unless_thorough(("2026-W15",), ("2026-W15", "2026-W21", "2026-W16"))


@pytest.fixture(scope="module")
def busy(cases: Path, checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The reports of a lab's busiest weeks, of more than a hundred runs each."""
    folder = tmp_path_factory.mktemp("busy")
    store = ["--store", str(folder / "store.sqlite")]
    mapping = ["--mapping", str(checkout / "examples" / "lab" / "mapping.toml")]
    assert main([*store, "import", "notebook", str(cases / "lab" / "runs.json"), *mapping, "--submit"]) == 0
    for name in BUSY:
        assert main([*store, "report", "weekly", "--week", name, "--out", str(folder / name)]) == 0
    return {name: folder / name / "index.html" for name in BUSY}


@pytest.mark.parametrize("name", BUSY)
def test_a_busy_week_is_a_few_sheets_with_every_fold_open_but_its_appendix(
    chromium: Any, busy: dict[str, Path], name: str
) -> None:
    with watched(chromium, busy[name]) as seen:
        seen.page.evaluate(OPEN.replace('"details"', '"details:not(.entry)"'))
        printed = seen.page.pdf(format="A4", prefer_css_page_size=True)
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= SHEETS


@pytest.mark.parametrize("name", BUSY)
def test_the_first_screen_of_a_busy_week_ends_within_a_screen_and_a_half(
    chromium: Any, busy: dict[str, Path], name: str
) -> None:
    with watched(chromium, busy[name]) as seen:
        box = seen.page.locator("#summary").bounding_box()
        assert box["y"] + box["height"] < 1.5 * 900
        assert seen.page.locator(".badges li").count() >= 5


@pytest.fixture(params=PAGES)
def path(request: pytest.FixtureRequest, chromium: Any, pages: dict[str, Path]) -> Path:
    return pages[request.param]


@pytest.fixture
def seen(chromium: Any, path: Path) -> Iterator[Watched]:
    with watched(chromium, path) as found:
        yield found


def test_the_page_asks_for_nothing_and_says_nothing(seen: Watched, path: Path) -> None:
    for item in seen.page.query_selector_all("summary"):
        item.click()
    seen.page.wait_for_load_state("networkidle")
    assert seen.requests == [path.as_uri()]
    assert seen.said == []


def test_every_link_leads_to_an_element(seen: Watched) -> None:
    assert seen.page.locator("a[href]").count() > 10
    assert seen.page.evaluate(DEAD_LINKS) == []


def test_a_link_that_is_followed_shows_its_receipt(seen: Watched) -> None:
    link = seen.page.locator("a[href^='#r-']:visible").first
    target = link.get_attribute("href")
    link.click()
    assert seen.page.url.endswith(target)
    box = seen.page.locator(target).bounding_box()
    assert 0 <= box["y"] < 900


def test_nothing_is_wider_than_the_window(seen: Watched) -> None:
    for width in WIDTHS:
        seen.width(width)
        assert (width, overflow(seen)) == (width, [])
    seen.media(media="print")
    seen.width(PAPER)
    assert ("paper", overflow(seen)) == ("paper", [])


def test_an_overflow_would_be_noticed(chromium: Any, pages: dict[str, Path]) -> None:
    with watched(chromium, pages["report"]) as seen:
        seen.page.evaluate(OPEN)
        seen.page.add_style_tag(content="table { min-width: 90rem }")
        assert overflow(seen)


def test_a_keyboard_reaches_the_skip_link_first_and_then_every_link(chromium: Any, pages: dict[str, Path]) -> None:
    with watched(chromium, pages["report"]) as seen:
        wanted = seen.page.evaluate(REACHABLE)
        assert 'class="skip"' in wanted[0]
        for index, item in enumerate(wanted):
            seen.page.keyboard.press("Tab")
            assert (index, seen.page.evaluate(FOCUSED)) == (index, [item, True])


def test_the_skip_link_leads_past_the_contents(chromium: Any, pages: dict[str, Path]) -> None:
    with watched(chromium, pages["report"]) as seen:
        seen.page.keyboard.press("Tab")
        seen.page.keyboard.press("Enter")
        seen.page.keyboard.press("Tab")
        assert seen.page.evaluate("document.querySelector('main').contains(document.activeElement)")


def test_the_page_says_as_much_without_javascript(chromium: Any, path: Path) -> None:
    with watched(chromium, path) as with_it, watched(chromium, path, java_script_enabled=False) as without:
        assert without.page.inner_text("body") == with_it.page.inner_text("body")
        assert without.page.locator("main").bounding_box() == with_it.page.locator("main").bounding_box()


@pytest.mark.parametrize(
    ("name", "width"),
    unless_thorough([("report", 400), ("hostile", 1280)], [(name, width) for name in PAGES for width in (400, 1280)]),
)
def test_axe_finds_no_fault(chromium: Any, pages: dict[str, Path], name: str, width: int) -> None:
    with watched(chromium, pages[name]) as seen:
        seen.width(width)
        assert faults(seen, WCAG) == []


def test_every_picture_has_a_name_and_a_description(seen: Watched) -> None:
    seen.page.evaluate(OPEN)
    found = seen.page.locator("figure svg").count()
    assert seen.page.get_by_role("img", name=re.compile(r"\w")).count() == found
    for item in seen.page.locator("figure svg").all():
        says = seen.page.locator(f"#{item.get_attribute('aria-describedby')}")
        assert len(says.text_content()) > 20


@pytest.mark.parametrize(
    "shown",
    unless_thorough(
        [{}, {"color_scheme": "dark"}, {"media": "print", "color_scheme": "dark"}],
        [{}, {"color_scheme": "dark"}, {"media": "print"}, {"media": "print", "color_scheme": "dark"}],
    ),
    ids=lambda shown: " ".join(shown.values()) or "light",
)
def test_words_and_marks_stand_out(chromium: Any, pages: dict[str, Path], shown: dict[str, str]) -> None:
    with watched(chromium, pages["report"]) as seen:
        seen.page.evaluate("location.hash = document.querySelector('.entry').id")
        seen.media(**shown)
        assert faults(seen, COLOURS) == []
        assert seen.page.evaluate(PALE, [4.5, 3]) == []


def test_pale_words_and_marks_would_be_found(chromium: Any, pages: dict[str, Path]) -> None:
    with watched(chromium, pages["report"]) as seen:
        seen.page.add_style_tag(content=":root { --soft: #ccc; --mark-1: #eee }")
        assert {item.partition(":")[0] for item in faults(seen, COLOURS)} == {"color-contrast"}
        assert "--mark-1" in {item for _, item in seen.page.evaluate(PALE, [4.5, 3])}


@pytest.mark.parametrize("name", [name for name in PAGES if name in HOSTILE])
def test_a_hostile_label_runs_nothing_even_where_the_page_forbade_nothing(
    chromium: Any, pages: dict[str, Path], name: str
) -> None:
    with watched(chromium, pages[name], bypass_csp=True) as seen:
        seen.page.wait_for_load_state("networkidle")
        assert seen.page.evaluate("window.hurt") is None
        assert seen.said == []
        assert seen.requests == [pages[name].as_uri()]
        assert seen.page.locator("script, img, iframe, base, [onload], [onfocus], [style*=fixed]").count() == 0
        seen.page.evaluate(OPEN)
        text = seen.page.inner_text("body")
        assert "window.hurt = 1" in text
        assert "{{ 7 * 7 }}" in text
        assert not set(text) & set("\x00\u202e\u2066")
