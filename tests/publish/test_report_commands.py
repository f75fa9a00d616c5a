"""``receipts report lane``, ``compare`` and ``claim``, and ``--since`` and ``--until``: pages with the same parts."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
from test_report_pages import Outline

import rule_cases as cases
import section_store as week
from receipts.cli import main
from receipts.judging.verdict import Finding, Level, Question, Subject
from receipts.publish.offenses import entries
from receipts.publish.page import text as as_text
from receipts.receipt import Parsed
from receipts.store import Store, open_store

pytestmark = pytest.mark.slow

FILES = ["index.html", "report.json", "report.md"]
BASIS = ["comparisons.parquet", "receipts.parquet"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a gain that vanished, a claim on it, and a decision."""
    path = tmp_path_factory.mktemp("commands") / "store.sqlite"
    with open_store(str(path)) as store:
        week.put(store, [*week.local_gain(), *week.at_target(2.31), week.launch("long", 2, **LONG)])
        with week.clock(week.MONDAY - timedelta(days=3)):
            week.claim(store, "buckets", text="a tenth <b>faster</b>", quoted_in=["README.md"], **week.SPEEDUP)
            store.published.decide(_id(store, "local buckets"), "hold", "try it at the target")
    return path


LONG = {"batch__sequence_length": 8192, "batch__global_batch": 32, "batch__accumulation": 2}


def _id(store: Store, label: str) -> str:
    return next(entry.id for entry in store.find() if entry.label == label)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Two receipts in files."""
    return [_write(tmp_path, week.side(name, 0, 2.3)[0]) for name in ("one", "two")]


def _write(folder: Path, parsed: Parsed) -> str:
    path = folder / parsed.source
    path.write_bytes(parsed.raw)
    return str(path)


def run(place: Path, out: Path, *words: str) -> dict[str, str]:
    """The files that a command writes, each a page as it should be."""
    assert main(["--store", str(place), "report", *words, "--out", str(out)]) == 0
    wanted = [*FILES, *(BASIS if words[0] in ("weekly", "lane") else [])]
    assert sorted(path.name for path in out.iterdir()) == sorted(wanted)
    made = {name: (out / name).read_text(encoding="utf-8") for name in FILES}
    outline = Outline(made["index.html"])
    ids = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert outline.open == []
    assert len(ids) == len(set(ids))
    assert {(item["href"] or "")[1:] for item in outline.all("a")} <= set(ids)
    for block in re.findall(r"(?:^\|.*\n)+", made["report.md"], re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in block.splitlines()}) == 1
    return made


def test_the_page_of_a_comparison_says_what_changed_and_what_the_effect_is(place: Path, tmp_path: Path) -> None:
    made = run(place, tmp_path / "out", "compare", "label=local base", "label=local buckets")
    text = made["report.md"]
    assert text.startswith("# Comparison of local buckets against local base\n")
    assert "accepted: comparable yes · path witnessed · effect faster on tokens_per_second" in text
    assert "**✓ ACCEPTED  B is 11.1 % faster (95 % 10.8 … 11.4): bucket_bytes 40000000 → 80000000, " in text
    assert "| `parallelism.bucket_bytes` | 40000000 | 80000000 | counts |" in text
    assert "+11.07 % | +10.77 … +11.37 % | faster |" in text
    assert "| compile amortized? |" in text
    assert "| ✓ yes |" in text
    assert "Claims that stand on these receipts: buckets." in text
    assert "hold | try it at the target" in text
    tree = json.loads(made["report.json"])
    assert tree["comparison"]["status"] == "accepted"
    assert len(tree["receipts"]) == 6


def test_the_page_of_a_refused_comparison_names_no_effect_and_explains_its_rules(place: Path, tmp_path: Path) -> None:
    text = run(place, tmp_path / "out", "compare", "label=local base", "label=long")["report.md"]
    assert "rejected: comparable no" in text
    (headline,) = [line for line in text.splitlines() if "REJECTED" in line]
    assert "2 settings changed; only 1 may: global" in headline.replace("\\_", "_")
    assert "%" not in headline
    assert "| rejected |" in text
    assert "| faster |" not in text
    why = text[text.index("## Why it is rejected") : text.index("## Findings")]
    assert len(re.findall(r"\[C101 many_axes\]\(#rule-C101\)", why.replace("\\_", "_"))) == 1
    assert "When two settings change at once, the difference cannot be credited to either." in text


def test_what_a_rule_says_of_both_sides_is_one_item() -> None:
    def of(side: Subject, at: str = "run.host") -> Finding:
        return Finding("R999", "rule", Level.SHOWN, Question.NONE, (), at, "found", "expected", "do", side, None)

    (item,) = entries([of("a"), of("b"), of("a", "run.site")], sides=True)
    assert as_text(item.title) == "W R999 rule on A and B"
    assert item.facts == (
        ("", ("run.host: found",)),
        ("", ("run.site: found",)),
        ("expected", ("expected",)),
        ("→", ("do",)),
    )


def test_two_files_are_compared_without_a_store(files: list[str], tmp_path: Path) -> None:
    text = run(tmp_path / "nothing.sqlite", tmp_path / "out", "compare", *files)["report.md"]
    assert "no axis: the two are repeats of one configuration" in text
    assert not (tmp_path / "nothing.sqlite").exists()


def test_a_page_takes_further_launches_of_a_side(tmp_path: Path) -> None:
    base = [_write(tmp_path, item) for item in week.side("base", 0, 2.3)]
    other = [_write(tmp_path, item) for item in week.side("other", week.HOUR, 2.07, week.changed())]
    also = [
        word for side, rest in (("a", base[1:]), ("b", other[1:])) for path in rest for word in (f"--also-{side}", path)
    ]
    text = run(tmp_path / "no.sqlite", tmp_path / "out", "compare", base[0], other[0], *also)["report.md"]
    assert "**verdict: accepted" in text
    assert "| faster |" in text
    assert "3 + 3 launches" in text
    alone = run(tmp_path / "no.sqlite", tmp_path / "alone", "compare", base[0], other[0])["report.md"]
    assert "**verdict: inconclusive" in alone


def test_a_page_takes_the_launches_that_witness_its_sides_and_names_them(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blind = [_blind(tmp_path, path) for path in files]
    assert "path unwitnessed" in run(tmp_path / "no.sqlite", tmp_path / "blind", "compare", *blind)["report.md"]
    twins = [_twin(tmp_path, path) for path in files]
    words = [word for path in twins for word in ("--witness", path)]
    made = run(tmp_path / "no.sqlite", tmp_path / "out", "compare", *blind, *words)
    assert "path witnessed" in made["report.md"].rpartition("**verdict: ")[2]
    assert "- **witnessed by**: [" in made["report.md"]
    tree = json.loads(made["report.json"])
    assert [item["name"] for item in tree["witnesses"]] == ["one twin", "two twin"]
    assert {item["id"] for item in tree["witnesses"]} <= {item["receipt"]["id"] for item in tree["receipts"]}
    wrong = ["report", "compare", blind[0], blind[0], "--witness", twins[1], "--out", str(tmp_path / "wrong")]
    assert main(["--store", str(tmp_path / "no.sqlite"), *wrong]) == 2
    assert "it witnesses no launch that was given" in capsys.readouterr().err
    assert not (tmp_path / "wrong").exists()


def _blind(folder: Path, path: str) -> str:
    """The same launch, which saw nothing of its path."""
    tree = json.loads(Path(path).read_bytes())
    for leaf in ("path.witnessed", "evidence"):
        cases.take(tree, leaf)
    return _write(folder, cases.parsed(tree, f"blind-{Path(path).name}"))


def _twin(folder: Path, path: str) -> str:
    """A profiled launch of the same configuration, which saw it."""
    tree = json.loads(Path(path).read_bytes())
    launch = tree["run"]["launch"]
    own = {"launch": f"{launch}-twin", "label": f"{launch.partition('-')[0]} twin", "kind": "profile"}
    tree["run"] |= {**own, "witness_for": launch}
    return _write(folder, cases.parsed(tree, f"twin-{Path(path).name}"))


def test_the_page_of_a_claim_tells_its_verdict_its_past_and_who_quotes_it(place: Path, tmp_path: Path) -> None:
    made = run(place, tmp_path / "out", "claim", "buckets", "--as-of", "2026-03-08")
    text = made["report.md"]
    assert "\n**? UNPROVEN  a tenth " in text
    assert "[K104 off target](#rule-K104)" in text
    assert "| 2026-02-27 09:00 | unproven |" in text
    assert "README.md" in text
    assert "## The two sides" in text
    assert "a tenth <b>" not in made["index.html"]
    with open_store(str(place)) as store:
        week.judge_again(store, "buckets")  # now, and so after --as-of
    again = run(place, tmp_path / "again", "claim", "buckets", "--as-of", "2026-03-08")
    assert again == made


def test_the_page_of_a_claim_without_a_receipt_is_a_page(place: Path, tmp_path: Path) -> None:
    with open_store(str(place)) as store:
        week.claim(
            store, "lost", text="gone", **{**week.SPEEDUP, "baseline": ["label=nobody"], "candidate": ["label=nobody"]}
        )
    text = run(place, tmp_path / "out", "claim", "lost")["report.md"]
    assert "[K101 no receipt](#rule-K101)" in text
    assert "No document is known that quotes it." in text
    assert "This page is from no receipt." in text


def test_a_claim_that_is_not_there_is_refused_and_nothing_is_written(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--store", str(place), "report", "claim", "none", "--out", str(tmp_path / "out")]) == 2
    assert "receipts claim list" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_page_of_a_lane_is_that_of_the_last_week_in_which_it_ran(place: Path, tmp_path: Path) -> None:
    words = ("lane", "nvidia-megatron", "--as-of", "2026-05-01")
    made = run(place, tmp_path / "out", *words)
    assert made["report.md"].startswith("# Lane nvidia-megatron, 2026-W10\n")
    assert "### Vanished at the target" in made["report.md"]
    assert json.loads(made["report.json"])["only_lanes"] == ["nvidia-megatron"]
    assert run(place, tmp_path / "again", *words) == made


def test_a_lane_that_never_ran_is_told_as_such(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = run(place, tmp_path / "out", "lane", "nanotron", "--as-of", "2026-05-01")
    assert "None ran before." in made["report.md"]
    assert "no receipt of nanotron that ran until then" in capsys.readouterr().err


def test_an_interval_that_is_no_week_is_told_as_one(place: Path, tmp_path: Path) -> None:
    words = ("weekly", "--since", "2026-03-02", "--until", "2026-03-03", "--as-of", "2026-03-20")
    made = run(place, tmp_path / "out", *words)
    tree = json.loads(made["report.json"])
    assert (tree["since"], tree["until"]) == ("2026-03-02T00:00:00Z", "2026-03-04T00:00:00Z")
    assert tree["counts"]["submitted"] == 6
    assert "**from** 2026-03-02 to 2026-03-03, UTC" in made["report.md"]
    assert "There are no retractions or supersessions." in made["report.md"]
    assert not re.search(r"\bweek\b", made["report.md"])


@pytest.mark.parametrize(
    "words",
    [
        ["weekly", "--since", "soon"],
        ["weekly", "--week", "2026-W10", "--since", "2026-03-01"],
        ["lane", "gpu"],
        ["compare", "label=local base", "nothing-of-that-name"],
        ["compare", "label=local base", "label=long", "--metric", "speed"],
    ],
)
def test_a_wrong_call_ends_with_two_and_writes_nothing(place: Path, tmp_path: Path, words: list[str]) -> None:
    assert main(["--store", str(place), "report", *words, "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


def test_each_kind_of_page_has_templates_that_the_user_may_replace(place: Path, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    for kind in ("lane", "compare", "claim"):
        (tmp_path / "own" / f"{kind}.html.j2").write_text("{{ page.title }}", encoding="utf-8")
    (tmp_path / "receipts.toml").write_text('reports = ["own"]\n', encoding="utf-8")
    for words in (["lane", "nvidia-megatron"], ["compare", "label=local base", "label=long"], ["claim", "buckets"]):
        out = tmp_path / words[0]
        config = ["--store", str(place), "--config", str(tmp_path / "receipts.toml")]
        assert main([*config, "report", *words, "--out", str(out)]) == 0
        assert (out / "index.html").read_text(encoding="utf-8").count("\n") == 0


def test_impact_knows_which_receipts_a_page_quotes(place: Path, tmp_path: Path) -> None:
    run(place, tmp_path / "out", "compare", "label=local base", "label=local buckets")
    with open_store(str(place)) as store:
        quotes = store.published.quotes(_id(store, "local buckets"))
    assert str((tmp_path / "out" / "report.md").resolve()) in [item.document for item in quotes]
