"""``receipts why``: from the traces of launches to the table of their difference, or to why there is none."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from command_line import Said, Shell
from grid_store import Grid
from receipts.plugins.why.profile import EXTRACT, read_profiles
from receipts.store import open_store
from span_traces import KinetoTrace

pytestmark = pytest.mark.slow

WORKERS = "flags.DATALOADER_WORKERS"


def cpu_trace(
    path: Path,
    wait: float,
    *,
    steps: int = 6,
    noise: float = 0,
    gemm: float = 300,
    marks: bool = True,
    attends: bool = False,
) -> Path:
    """A trace of steps of 390 ms and a wait for data, in microseconds; ``noise`` is one launch's own."""
    trace, now = KinetoTrace(deviceProperties=[]), 1_000_000.0
    for number in range(steps):
        length = 1000 * (390 + wait + noise)
        if marks:
            trace.step(number, now, length)
        trace.event("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "user_annotation", now, 1000 * wait)
        now += 1000 * wait
        trace.op("aten::linear", now + 100, 1000 * gemm)
        trace.op("aten::mm", now + 110, 1000 * gemm - 100)
        trace.op("aten::add_", now + 1000 * gemm + 200, 1000 * (80 + noise))
        if attends:
            trace.op("aten::_scaled_dot_product_flash_attention_for_cpu", now + 1000 * (gemm + 85), 2000)
        now += length - 1000 * wait
    return trace.write(path)


@pytest.fixture
def told(shell: Shell) -> Callable[..., None]:
    """Stores launches of both sides; ``wait`` is how long B waits for data, and ``traced`` what its traces show."""

    def store(wait: float = 40, traced: float | None = None, launches: int = 3, **others: Any) -> None:
        grid = Grid(
            {WORKERS: ({"value": 4, "before_runtime": True}, {"value": 0, "before_runtime": True})},
            {WORKERS: 1 + wait / 400},
        )
        for at in range(launches):
            for letter, corner, own in (("a", [], 10.0), ("b", [WORKERS], 10.0 + (wait if traced is None else traced))):
                receipt = grid.launch(corner, run__session="s", run__label=letter)
                file = shell.folder / f"{letter}{at}.json"
                file.write_bytes(receipt.raw)
                trace = cpu_trace(shell.folder / f"{letter}{at}.trace.json", own, noise=at / 10, **others)
                said = shell("submit", str(file), "--evidence", str(trace))
                assert said.code == 0, said.err

    return store


def why(shell: Shell, *words: str) -> Said:
    return shell("why", "label=a", "label=b", *words)


def test_an_injected_stall_is_the_largest_line_and_fits_its_axis(shell: Shell, told: Callable[..., None]) -> None:
    told()
    said = why(shell)
    assert said.code == 0, said.out
    assert said.lines[0].startswith("EXPLAINED  B is 10.")
    data = why(shell, "--json").json
    lines = {line["class"]: line for line in data["table"]["lines"]}
    largest = max(lines.values(), key=lambda line: abs(line["change"]))
    assert (largest["class"], largest["standing"], largest["axis"]) == ("data wait", "consistent", WORKERS)
    assert largest["change"] / data["table"]["denominator"] == pytest.approx(40e6, rel=0.01)
    assert [name for name, line in lines.items() if line["standing"] != "noise"] == ["data wait"]


def test_the_lines_add_up_as_whole_numbers(shell: Shell, told: Callable[..., None]) -> None:
    told()
    table = why(shell, "--json").json["table"]
    for column in ("a", "b", "change"):
        assert sum(line[column] for line in table["lines"]) == table[column]
    assert table["change"] == table["b"] - table["a"]


def test_it_needs_no_trace_once_submitted(shell: Shell, told: Callable[..., None]) -> None:
    told()
    before = why(shell).out
    for file in shell.folder.rglob("*.trace.json"):
        file.unlink()
    for file in shell.folder.rglob("*.gz"):
        file.unlink()
    assert why(shell).out == before


def test_a_trace_that_is_only_kept_is_read_when_it_is_asked_for(shell: Shell, told: Callable[..., None]) -> None:
    told()
    before = why(shell).out
    with open_store(f"sqlite:///{shell.folder / 'store.sqlite'}") as store:
        assert store.extracts(store.resolve_all("label=a")[0], EXTRACT)
        store.database.engine.raw_connection().executescript("DROP TRIGGER extracts_no_delete; DELETE FROM extracts;")
    assert why(shell).out == before


def test_a_profile_takes_a_few_kilobytes(shell: Shell, told: Callable[..., None]) -> None:
    told(launches=1)
    with open_store(f"sqlite:///{shell.folder / 'store.sqlite'}") as store:
        (extract,) = store.extracts(store.resolve("label=a"), EXTRACT)
        (profile,) = read_profiles(extract.raw)
        assert (len(profile.steps), profile.host, len(extract.raw) < 4096) == (5, True, True)
        store.purge(store.resolve("label=a"), "a test")
        rows = store.database.engine.raw_connection().execute("SELECT COUNT(*) FROM extracts").fetchone()
    assert rows == (1,)


def test_nothing_is_said_of_launches_that_do_not_differ(shell: Shell, told: Callable[..., None]) -> None:
    told(wait=0)
    said = why(shell)
    assert (said.code, said.lines[0][:18]) == (3, "NOTHING TO EXPLAIN")
    assert why(shell, "--json").json["table"] is None


def test_traces_with_the_other_sign_are_refused_and_shown_only_on_demand(
    shell: Shell, told: Callable[..., None]
) -> None:
    told(traced=-8)
    said = why(shell)
    assert said.code == 1
    assert said.lines[0].startswith("REFUSED  the traced steps differ by −8.000 ms, the measured ones by +4")
    assert "data wait" not in said.out
    shown = why(shell, "--anyway")
    assert shown.code == 1
    assert "do not quote it" in " ".join(shown.out.split())
    assert "data wait" in shown.out


def test_traces_without_marks_or_with_too_few_steps_are_refused(shell: Shell, told: Callable[..., None]) -> None:
    told(steps=3)
    said = why(shell)
    assert said.code == 3
    assert "2 whole steps are traced, and a table needs 3" in " ".join(said.out.split())
    assert "receipts record --why" in said.out


def test_traces_that_mark_no_step_are_laid_side_by_side_as_spans(shell: Shell, told: Callable[..., None]) -> None:
    told(marks=False)
    assert "the trace marks no steps" in " ".join(why(shell).out.split())
    said = why(shell, "--span")
    assert (said.code, said.lines[0]) == (0, "EXPLAINED  whole traces, not steps: data wait +240.000 ms")
    table = why(shell, "--span", "--json").json["table"]
    assert (table["of"], table["residual_ns"]) == ("span", None)
    assert sum(line["change"] for line in table["lines"]) == table["change"]


def test_a_span_is_refused_of_traces_that_mark_their_steps(shell: Shell, told: Callable[..., None]) -> None:
    told(launches=2)
    said = why(shell, "--span")
    assert said.code == 1
    assert "the trace marks 6 steps, and --span compares whole traces" in " ".join(said.out.split())


def test_a_rejected_comparison_is_not_explained(shell: Shell) -> None:
    trace = cpu_trace(shell.folder / "t.json", 10)
    ids = []
    for name, leaves in (
        ("a", {}),
        ("b", {"numerics__optimizer": "sgd", WORKERS.replace(".", "__"): {"value": 0, "before_runtime": True}}),
    ):
        file = shell.write(name, **leaves)
        assert shell("submit", file, "--evidence", str(trace)).code == 0
        ids.append(f"label={name}")
    said = shell("why", *ids, "--json")
    assert said.code == 1
    assert said.json["refusals"][0]["what"].startswith("the comparison is rejected: C101 ")


def test_without_traces_it_says_how_to_make_them(shell: Shell) -> None:
    said = shell("why", shell.write("a"), shell.write("b"))
    assert said.code == 3
    assert "receipts record --why" in said.out


def test_documents_are_explained_with_the_traces_that_they_list(shell: Shell, told: Callable[..., None]) -> None:
    told(launches=2)
    with open_store(f"sqlite:///{shell.folder / 'store.sqlite'}") as store:
        for letter in "ab":
            for at, name in enumerate(store.resolve_all(f"label={letter}")):
                (shell.folder / f"{letter}{at}.json").write_bytes(store.parsed(name).raw)
    shell.unmade()
    traces = [word for path in sorted(shell.folder.glob("*.trace.json")) for word in ("--trace", str(path))]
    files = [str(shell.folder / f"{name}.json") for name in ("a0", "b0", "b1")]
    said = shell("why", files[0], *files[1:], "--also-a", str(shell.folder / "a1.json"), *traces, "--anyway", "--json")
    assert json.loads(said.out)["table"] is not None, said.out + said.err


def test_the_worked_example_of_the_page_is_what_is_printed(
    shell: Shell, told: Callable[..., None], checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    told()
    text = (checkout / "docs" / "why.md").read_text(encoding="utf-8")
    (session,) = re.findall(r"```console\n\$ receipts why label=a label=b\n(.*?)```", text, re.DOTALL)
    assert why(shell).out == session


def test_the_waterfall_has_at_most_ten_bars_from_a_to_b(shell: Shell, told: Callable[..., None]) -> None:
    told()
    path = shell.folder / "why.svg"
    assert why(shell, "--svg", str(path)).code == 0
    texts = [item.text for item in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]
    amounts = [text for text in texts if text and text.endswith(" ms")]
    assert len(amounts) <= 10
    assert {"A", "data wait", "not in the traces", "B", "+40.000 ms", "ms a step"} <= set(texts)


def test_the_weekly_report_has_the_waterfall_of_an_accepted_comparison(shell: Shell, told: Callable[..., None]) -> None:
    told(attends=True)
    assert shell("report", "weekly", "--since", "2020-01-01", "--out", "week").code == 0
    written = (shell.folder / "week" / "report.md").read_text(encoding="utf-8")
    assert "| data wait | −40.000 ms |" in written
    page = (shell.folder / "week" / "index.html").read_text(encoding="utf-8")
    assert page.count('<svg xmlns="http://www.w3.org/2000/svg"') >= 1
    assert "Where the step's time went" in html.unescape(page)
    added = json.loads((shell.folder / "week" / "report.json").read_bytes())["added"]
    drawn = added["receipts.plugins.why.weekly"]
    assert len(drawn) == 1
    assert len(drawn[0]["bars"]) <= 10


def test_the_page_of_a_comparison_and_of_a_receipt_show_the_profiles(shell: Shell, told: Callable[..., None]) -> None:
    told()
    compared = shell("compare", "label=a", "label=b", "--format", "markdown").out
    assert "Where the step's time went" in compared
    assert "| data wait | 10.000 | 50.000 | +40.000 |" in compared
    name = shell("list", "--json").json[0]["id"]
    shown = shell("show", name, "-v").out if "-v" in shell("show", "--help").out else shell("show", name).out
    assert re.search(r"data wait +[15]0\.000 +\d", shown)
    assert "5 of 5 traced steps, host, torch.profiler" in " ".join(shown.split())
