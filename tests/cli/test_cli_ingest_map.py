"""``receipts ingest --map``: files of a person's own, by the map of docs/ingest-map.md and by maps with mistakes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from command_line import Shell

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "ingest-map.md").read_text(encoding="utf-8")
(MAP,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
RECORD, CONFIG = (json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))


@pytest.fixture
def folder(shell: Shell) -> Path:
    """The run of the page: forty records, a configuration, a log."""
    made = shell.folder / "run"
    made.mkdir()
    records = [
        {**RECORD, "iter": step, "loss": 5 - step / 100, "time": {"step_ms": 200 + step % 3}} for step in range(1, 41)
    ]
    (made / "metrics.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    (made / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    (made / "out.log").write_text("begin\n[eval] peak 31.5 GiB\n", encoding="utf-8")
    (made / "steps.toml").write_text(MAP, encoding="utf-8")
    return made


def ingest(shell: Shell, *words: str) -> dict[str, Any]:
    """All that is told of the run."""
    outcome = shell("ingest", "run", "--map", "run/steps.toml", *words, "--json")
    assert outcome.code == 0, outcome.err
    return dict(outcome.json)


def mapped(shell: Shell, name: str, content: str, entry: str) -> dict[str, Any]:
    """All that is told of one file, by one entry of a map."""
    (shell.folder / "run").mkdir()
    (shell.folder / "run" / name).write_text(content, encoding="utf-8")
    (shell.folder / "run" / "steps.toml").write_text(f'[[files]]\nname = "{name}"\n{entry}', encoding="utf-8")
    return ingest(shell, "--set", "run.started=2026-03-02T09:00:00Z")


def refused(shell: Shell, text: str) -> list[str]:
    """What is said of a map, a line each."""
    (shell.folder / "bad.toml").write_text(text, encoding="utf-8")
    (shell.folder / "x.csv").write_text("step\n1\n", encoding="utf-8")
    outcome = shell("ingest", "x.csv", "--map", "bad.toml")
    assert outcome.code == 2
    return [line.removeprefix("receipts: ") for line in outcome.err.splitlines()]


def test_the_example_of_the_page_is_read(shell: Shell, folder: Path) -> None:
    found = ingest(shell)
    receipt = found["receipt"]
    assert receipt["measurement"]["step_durations_seconds"][:3] == [0.201, 0.202, 0.2]
    assert receipt["measurement"]["tokens_per_step"] == 8192
    assert (receipt["measurement"]["loss"]["first"], receipt["measurement"]["loss"]["last"]) == (4.99, 4.6)
    assert receipt["batch"] == {"global_batch": 8, "sequence_length": 1024}
    assert (receipt["model"]["depth"], receipt["model"]["hidden"]) == (12, 768)
    assert receipt["numerics"]["compute_dtype"] == "bf16"
    assert receipt["hardware"] == {"accelerator": "h100-sxm", "chips": 1}
    assert receipt["memory"]["aggregate"]["bytes"] == 31.5 * 2**30
    assert receipt["run"]["started"] == "2026-03-02T09:00:00Z"
    assert {entry["kind"] for entry in receipt["evidence"]} == {"map", "step-map"}


def test_missing_and_unnamed_fields_are_counted_and_named(shell: Shell, folder: Path) -> None:
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    lines[3:5] = ["{broken", json.dumps({"iter": 5, "time": {"step_ms": "soon"}})]
    (folder / "metrics.jsonl").write_text("\n".join(lines), encoding="utf-8")
    said = " | ".join(item["text"] for item in ingest(shell)["remarks"])
    assert "loss: the field loss is in 38 of 39 steps (map line 10)" in said
    assert "fields that the map does not name: lr (38)" in said
    assert "1 lines are not JSON objects" in said
    assert "step_seconds: 1 values are not numbers, the first is 'soon'" in said


def test_a_table_with_totals_gives_differences(shell: Shell) -> None:
    rows = "".join(f"{step};{step * 0.5};{step * 4096};{50 + step / 10}\n" for step in range(1, 31))
    entry = (
        'delimiter = ";"\n[files.steps]\nstep = "step"\nelapsed_seconds = "wall"\ntokens_total = "seen"\n'
        'mfu = { from = "mfu", unit = "%" }\n'
    )
    found = mapped(shell, "log.csv", f"step;wall;seen;mfu\n{rows}", entry)["receipt"]["measurement"]
    assert found["step_durations_seconds"] == [0.5] * 29
    assert found["tokens_per_step"] == 4096


def test_a_document_with_a_list_of_records(shell: Shell) -> None:
    history = [{"i": step, "t": 0.25} for step in range(12)]
    content = json.dumps({"args": {"bs": 4}, "log": {"history": history}})
    entry = (
        'records = "log.history"\n[files.steps]\nstep = "i"\nstep_seconds = "t"\n'
        '[files.leaves]\nbatch.global_batch = "args.bs"\n'
    )
    found = mapped(shell, "state.json", content, entry)["receipt"]
    assert (len(found["measurement"]["step_durations_seconds"]), found["batch"]["global_batch"]) == (12, 4)


def test_of_a_peak_that_each_line_prints_the_highest_counts(shell: Shell) -> None:
    lines = "".join(f"it {step} peak {peak} GiB\n" for step, peak in enumerate((31.5, 32.0, 30.5), 1))
    entry = (
        "pattern = 'it (?P<n>\\d+) peak (?P<peak>\\S+ GiB)'\n[files.steps]\nstep = \"n\"\n"
        '[files.leaves]\n"memory.aggregate.bytes" = "peak"\n'
    )
    assert mapped(shell, "out.log", lines, entry)["receipt"]["memory"]["aggregate"]["bytes"] == 32 * 2**30


def test_every_mistake_of_a_map_is_told_with_its_line(shell: Shell) -> None:
    said = refused(
        shell,
        "[[files]]\n"
        'nme = "x.csv"\n'
        'format = "excel"\n'
        "[files.steps]\n"
        'step_second = "t"\n'
        'loss = { from = "l", unit = "furlong" }\n'
        "[files.leaves]\n"
        '"batch.global_bach" = "b"\n'
        '"hardware.chips" = { value = "eight" }\n'
        "[[files]]\n"
        'name = "*.txt"\n'
        "pattern = '(?P<a>'\n"
        "[files.steps]\n"
        'step = "a"\n',
    )
    wanted = (
        ("line 2", "nme"),
        ("line 1", "name is missing"),
        ("line 3", "'excel'"),
        ("line 5", "did you mean step_seconds"),
        ("line 6", "'furlong'"),
        ("line 4", "steps have no number"),
        ("line 8", "did you mean batch.global_batch"),
        ("line 9", "'eight'"),
        ("line 12", "does not compile"),
    )
    for place, word in wanted:
        assert any(place in line and word in line for line in said), (place, word, said)


def test_a_map_that_is_no_toml_or_not_there_is_told(shell: Shell) -> None:
    assert "line 1" in refused(shell, "files = [ ;")[0]
    outcome = shell("ingest", "x.csv", "--map", "none.toml")
    assert outcome.code == 2
    assert "none.toml" in outcome.err


def test_an_entry_that_fits_no_file_is_told(shell: Shell) -> None:
    said = refused(shell, '[[files]]\nname = "y.csv"\n[files.steps]\nstep = "step"\n')
    assert said == ["bad.toml: line 1: no file is called y.csv (name one)"]


@pytest.mark.parametrize("content", ["", "{}", "[1, 2]", '{"i": 1e400}', '{"i": "x"}', "[" * 5000, '{"i": true}'])
def test_hostile_documents_are_read_as_far_as_they_go(shell: Shell, content: str) -> None:
    (shell.folder / "x.json").write_text(content, encoding="utf-8")
    (shell.folder / "m.toml").write_text('[[files]]\nname = "x.json"\n[files.steps]\nstep = "i"\n', encoding="utf-8")
    assert shell("ingest", "x.json", "--map", "m.toml", "--set", "run.started=2026-03-02T09:00:00Z").code in (0, 2)


@pytest.mark.parametrize(
    "content", ["", "i\n", "i\n" + "9" * 200_000, 'i\n"1\n2', "i,i\n1,2,3\n", "i\n\0\n1\n", "i\nnan\n1e999\n"]
)
def test_hostile_tables_are_read_as_far_as_they_go(shell: Shell, content: str) -> None:
    (shell.folder / "x.csv").write_text(content, encoding="utf-8")
    entry = '[[files]]\nname = "x.csv"\n[files.steps]\nstep = "i"\ntokens = "i"\nelapsed_seconds = "i"\n'
    (shell.folder / "m.toml").write_text(entry, encoding="utf-8")
    outcome = shell("ingest", "x.csv", "--map", "m.toml", "--set", "run.started=2026-03-02T09:00:00Z")
    assert outcome.code in (0, 2), outcome.err


@pytest.mark.parametrize(
    "entry",
    [
        'delimiter = ";;"\n[files.steps]\nstep = "i"',
        '[files.steps]\nstep = { from = "i", map = 3 }',
        "[files.steps]\nstep = 3",
        "[files.steps]\nstep = {}",
        "steps = 3\nleaves = []",
        "format = 3\npattern = 4",
        '[files.leaves]\n"memory.chips" = "x"\nrun = "y"',
        '[files.leaves]\nrun.started = { from = "t", unit = ["s"] }',
        'name = "x.csv"',
        'format = ["csv"]',
    ],
)
def test_every_malformed_entry_is_told_and_none_is_a_defect(shell: Shell, entry: str) -> None:
    said = refused(shell, f'[[files]]\nname = "x.csv"\n{entry}\n')
    assert said
    assert all("line" in line for line in said)


RECORDS_OF_LABS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "step-records": (
        {
            "label": "bf16",
            "seq_length": 4096,
            "tokens_per_step": 262144,
            "param_total_numel": 4730000000,
            "steps": [
                {"iteration": step, "elapsed_ms": 2000.0 + step, "lm_loss": 11.1 - step, "global_batch_size": 64}
                for step in (1, 2, 3)
            ],
        },
        {"measurement.step_durations_seconds": [2.001, 2.002, 2.003], "batch.global_batch": 64, "run.label": "bf16"},
    ),
    "profile-receipt": (
        {"label": "fa4", "elapsed_s": 12.5, "tok_per_sec": 52428.8, "peak_mem_gb": 31.4, "steps": 20},
        {"measurement.steps": 20, "measurement.stated.tokens_per_second": 52428.8, "memory.aggregate.bytes": None},
    ),
    "rented-gpu": (
        {"gpu_class": "H200:8", "steady_state": {"tok_per_sec_global": 112152.0, "step_p50_ms": 2337.0}},
        {"hardware.chips": 8, "hardware.accelerator": "h200-sxm", "measurement.stated.step_seconds": 2.337},
    ),
}


@pytest.mark.parametrize("name", RECORDS_OF_LABS)
def test_a_shipped_map_reads_the_records_that_it_is_for(shell: Shell, name: str) -> None:
    record, wanted = RECORDS_OF_LABS[name]
    shipped = Path(__file__).resolve().parents[2] / "examples" / "maps" / f"{name}.toml"
    (shell.folder / "summary-receipt-record.json").write_text(json.dumps(record), encoding="utf-8")
    outcome = shell("ingest", "summary-receipt-record.json", "--map", str(shipped), "--json")
    assert outcome.code == 0, outcome.err
    for path, value in wanted.items():
        node: Any = outcome.json["receipt"]
        for part in path.split("."):
            node = node.get(part) if node is not None else None
        assert node == value, path
