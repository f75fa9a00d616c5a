"""Reading a page: what is prose and what is not, where statements stand, links, ignore comments, size."""

from __future__ import annotations

from pathlib import Path

import pytest

from receipts.base.errors import UsageError
from receipts.plugins.lint import prose, verbs
from receipts.plugins.lint.page import PageRemark, page
from receipts.plugins.lint.statement import Statement
from work_done import lines_run


def found(text: str) -> list[Statement]:
    return [item for item in page(text, "a.md") if isinstance(item, Statement)]


def remarks(text: str) -> list[PageRemark]:
    return [item for item in page(text, "a.md") if isinstance(item, PageRemark)]


@pytest.mark.parametrize(
    ("text", "kind", "metric", "values", "unit", "direction"),
    [
        ("It is 1.3× faster.", "ratio", "tokens_per_second", (1.3,), "×", "up"),
        ("We see 29.2 % MFU.", "reading", "mfu", (29.2,), "%", "none"),
        ("The lane has an MFU of 41%.", "reading", "mfu", (41.0,), "%", "none"),
        ("It runs at 289 TFLOP/s.", "reading", "tflops_per_second_per_chip", (289.0,), "TFLOP/s", "none"),
        ("It runs at 98k tok/s.", "reading", "tokens_per_second", (98_000.0,), "tok/s", "none"),
        ("112,152 tokens/s in total", "reading", "tokens_per_second", (112_152.0,), "tokens/s", "none"),
        ("13.4k tok/s/GPU on average", "reading", "tokens_per_second_per_chip", (13_400.0,), "tok/s/GPU", "none"),
        ("Throughput changed by −34 %.", "ratio", "tokens_per_second", (-34.0,), "%", "down"),
        ("This gives +13.3 % throughput.", "ratio", "tokens_per_second", (13.3,), "%", "up"),
        ("MFU went from 38 to 41 %.", "change", "mfu", (38.0, 41.0), "%", "up"),
        ("The step time went from 41 to 38 ms.", "change", "step_seconds", (41.0, 38.0), "ms", "down"),
        ("A step takes 2.6 s/step.", "reading", "step_seconds", (2.6,), "s/step", "none"),
        ("Step time fell from 3018 ms to 2664 ms.", "change", "step_seconds", (3018.0, 2664.0), "ms", "down"),
        ("Peak memory is 52 GB.", "reading", "peak_bytes", (52.0,), "GB", "none"),
        ("Peak memory is ~0.5 GiB less.", "change", "peak_bytes", (0.5,), "GiB", "down"),
        ("Memory use decreases by ~9 GB.", "change", "peak_bytes", (9.0,), "GB", "down"),
        ("It saves 20 minutes of compile time.", "change", "compile_seconds", (20.0,), "minutes", "down"),
        ("Throughput is 165–178k tok/s.", "reading", "tokens_per_second", (165_000.0, 178_000.0), "tok/s", "none"),
        ("We get 16 789 tokens/s.", "reading", "tokens_per_second", (16_789.0,), "tokens/s", "none"),
        (
            "throughput per GPU (TFLOP/s/GPU): 410.2",
            "reading",
            "tflops_per_second_per_chip",
            (410.2,),
            "TFLOP/s/GPU",
            "none",
        ),
        ("elapsed time per iteration (ms): 8650.7", "reading", "step_seconds", (8650.7,), "ms", "none"),
        ("Peak memory (GiB): 54.9", "reading", "peak_bytes", (54.9,), "GiB", "none"),
        ("tps: 7,012", "reading", "tokens_per_second", (7012.0,), "tps", "none"),
        (
            "It sustains 779 model TFLOP/s/GPU.",
            "reading",
            "tflops_per_second_per_chip",
            (779.0,),
            "TFLOP/s/GPU",
            "none",
        ),
        ("Average step time: 8.65s; memory is stable.", "reading", "step_seconds", (8.65,), "s", "none"),
        ("MFU rises from 45.0% to 50.1% as gradient accumulation grows.", "change", "mfu", (45.0, 50.1), "%", "up"),
        ("FP8 gives +4.3 % improvement of step time.", "ratio", "step_seconds", (4.3,), "%", "better"),
        ("It has a 0.5 % throughput loss.", "ratio", "tokens_per_second", (0.5,), "%", "down"),
        ("It costs 2.7x time.", "ratio", "step_seconds", (2.7,), "×", "worse"),
        ("Compile time is 2.3x faster.", "ratio", "compile_seconds", (2.3,), "×", "up"),
        ("The compiled step is 2x faster.", "ratio", "tokens_per_second", (2.0,), "×", "up"),
        ("Throughput stays within 1 % of BF16.", "ratio", "tokens_per_second", (1.0,), "%", "equal"),
        ("FP8 delivers 137% of BF16 throughput.", "ratio", "tokens_per_second", (1.37,), "×", "up"),
        ("It keeps 96 % of the per-GPU throughput.", "ratio", "tokens_per_second_per_chip", (0.96,), "×", "down"),
        ("It has a gain of 3~5 % in throughput.", "ratio", "tokens_per_second", (3.0, 5.0), "%", "better"),
        ("It brings 10x faster compilation.", "ratio", "compile_seconds", (10.0,), "×", "up"),
        ("Recompilation costs 12 s.", "reading", "compile_seconds", (12.0,), "s", "none"),
        ("The median step took 1.05 s.", "reading", "step_seconds", (1.05,), "s", "none"),
        ("It ran at 475[^note] tok/s.", "reading", "tokens_per_second", (475.0,), "tok/s", "none"),
    ],
)
def test_a_statement_is_read(
    text: str, kind: str, metric: str, values: tuple[float, ...], unit: str, direction: str
) -> None:
    (item,) = found(f"[{text}](receipt:a..b)" if kind == "ratio" else text)
    assert (item.kind, item.metric, item.values, item.unit) == (kind, metric, values, unit)
    assert item.direction == direction


@pytest.mark.parametrize(
    "text",
    [
        "The card has 141 GB of HBM and 4.8 TB/s of bandwidth.",
        "If MFU drops below 30 %, page the on-call.",
        "TODO: measure whether it is 10 % faster.",
        "Reward went up 12 %.",
        "Gradient norms stay within 10 % of the baseline.",
        "MI300X: 1307 TFLOP/s, 192 GB HBM3, 5.3 TB/s.",
        "An alert fires when step time exceeds 3 s.",
        "Warm-up takes 2000 steps, 1 % of training.",
        "The learning rate decays to 10% of its peak.",
        "The acceptance rate is 85%.",
        "It happened in 0.12% of the total iterations.",
        "Its dense peak is 989 TFLOP/s in BF16.",
        "The model has 6.2B parameters in 40 layers.",
        "Built on 2026-01-04 with version 2.9.1.",
        "Accuracy rose by 3 %.",
        "It does not fit on a page.",
        "The context limit is 4,096 tokens.",
        "We copied 140 GB of traffic logs.",
        "Dropout is 10 % and warm-up 2 % of the steps.",
        "Our goal is 100k tok/s.",
        "It should reach 50 % MFU.",
        "Is it 30 % faster?",
        "Run it with `--rate 98k tok/s` again.",
        "See https://example.org/98k-tok/s/2x-faster for more.",
        "```\nstep 3: 98k tok/s\n```",
        "    step 3: 98k tok/s",
        "<!-- it reached 98k tok/s -->",
        "<pre>\n98k tok/s\n</pre>",
        "---\nspeed: 98k tok/s\n---",
        "We use 8x H100 and a 16×16 mesh.",
        "## 2.1 Throughput",
        "![98k tok/s](plot.png)",
        "We repeated the throughput test three times.",
        "In the second half of training the throughput falls.",
        "Half the time it crashes with low memory.",
        "A quarter of the documents were dropped while memory grew.",
        "Throughput with twice as many cards is the same.",
        "It ran at 1e400 tok/s.",
        "Training time was 41.8 min.",
        "It sustains 3.3 PFLOP/s across 8 GPUs.",
        "We saw 455 samples/s at 55 % HFU, and a latency of 12 ms.",
        "| run | samples/s | HFU |\n|---|---|---|\n| a | 98.1 | 55 % |\n",
    ],
)
def test_other_numbers_are_left_alone(text: str) -> None:
    assert [item.text for item in found(text)] == []


@pytest.mark.parametrize(
    ("head", "row", "said"),
    [
        ("| metric | before | after |", "| Throughput (tok/s) | 3966 | 12329 |", ["tokens_per_second"] * 2),
        ("| metric | before | Δ |", "| Peak memory (GB) | 1.43 | −68.6 % |", ["peak_bytes", "peak_bytes"]),
        (
            "| run | tok/s | mem |",
            "| a | 121k (+23%) | 59.8 GB (−3.7%) |",
            ["tokens_per_second"] * 2 + ["peak_bytes"] * 2,
        ),
        ("| run | Step time (ms) | vs baseline |", "| a | 410 | −19.9% |", ["step_seconds", "step_seconds"]),
        ("| run | Step time (ms) | Speedup |", "| a | 410 | +25% |", ["step_seconds", "tokens_per_second"]),
        ("| run | Time (s/it) | tok/s/GPU |", "| a | 1.12 | 2311 |", ["step_seconds", "tokens_per_second_per_chip"]),
    ],
)
def test_a_number_in_a_table_is_of_the_metric_that_it_stands_under(head: str, row: str, said: list[str]) -> None:
    rule = "|---" * (head.count("|") - 1) + "|"
    assert [item.metric for item in found(f"{head}\n{rule}\n{row}\n")] == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("It reaches an MFU of 0.45.", [("mfu", (0.45,), "")]),
        ("It trains with 2x fewer steps and 30% fewer parameters.", []),
        (
            "It gives 1,250 tok/s/GPU, 445 TFLOP/s/GPU (23% MFU on bf16 peak).",
            [
                ("tokens_per_second_per_chip", (1_250.0,), "tok/s/GPU"),
                ("tflops_per_second_per_chip", (445.0,), "TFLOP/s/GPU"),
                ("mfu", (23.0,), "%"),
            ],
        ),
        ("It makes 412 TFLOP/s/GPU vs 989 TFLOP/s peak.", [("tflops_per_second_per_chip", (412.0,), "TFLOP/s/GPU")]),
        ("With bs=8 → 20k tok/s.", [("tokens_per_second", (20_000.0,), "tok/s")]),
        ("MFU improves from 21.2 to 22.1.", [("mfu", (21.2, 22.1), "%")]),
        ("Each H100 reads 16.5k tok/s.", [("tokens_per_second_per_chip", (16_500.0,), "tok/s")]),
        ("We reach 0.42 MFU.", [("mfu", (0.42,), "")]),
        ("Model FLOPs utilization: 0.47", [("mfu", (0.47,), "")]),
        ("It cut memory by 60% at the cost of 25% slower steps.", []),
    ],
)
def test_a_number_in_prose_is_of_what_it_is_said_of(text: str, said: list[tuple[str, tuple[float, ...], str]]) -> None:
    assert [(item.metric, item.values, item.unit) for item in found(text)] == said


def test_the_second_in_a_heads_unit_is_no_unit_of_its_numbers() -> None:
    items = found("| run | TFLOP/s/GPU | PFLOPS |\n|---|---|---|\n| a | 412 | 0.412 |\n")
    assert [(item.metric, item.unit) for item in items] == [
        ("tflops_per_second_per_chip", "TFLOP/s"),
        ("tflops_per_second_per_chip", "PFLOP/s"),
    ]


def test_points_in_a_table_are_a_difference() -> None:
    items = found("| metric | before | Δ |\n|---|---|---|\n| MFU | 12% | +26 pp |\n")
    assert [(item.kind, item.values, item.unit) for item in items[1:]] == [("change", (26.0,), "points")]


def test_lines_and_columns_are_those_of_the_file() -> None:
    text = "# Title\n\n> - One line, and\n>   then **98k tok/s** at last.\n\n"
    text += "| a | tok/s |\n| --- | --- |\n| x | `y` 7 |\n| x | 12,345 |\n"
    places = {(item.line, item.column): item.text for item in found(text)}
    assert places[(4, text.splitlines()[3].index("98k") + 1)] == "98k tok/s"
    assert places[(9, 7)] == "12,345"
    for item in found(text):
        line = text.splitlines()[item.line - 1]
        assert line[item.column - 1 : item.end_column - 1].strip("*") == item.text


def test_a_link_backs_the_number_in_its_text() -> None:
    (one,) = found("It gives [+13.3 % tok/s](receipt:81aa..3f9c) here.")
    assert one.link is not None
    assert one.link.receipts == ("81aa", "3f9c")
    (two,) = found("It runs at [289 TFLOP/s](receipt:3f9c).")
    assert two.link is not None
    assert two.link.receipts == ("3f9c",)
    (three,) = found("It is [twice as fast](claim:fused-heads).")
    assert three.link is not None
    assert three.link.claim == "fused-heads"


def test_a_link_after_a_number_backs_it_and_one_in_a_row_backs_the_row() -> None:
    first, second = found("We saw 88k tok/s and then 98k tok/s ([receipt](receipt:3f9c)).")
    assert (first.link, second.link is not None) == (None, True)
    row = found("| run | tok/s | MFU | |\n|---|---|---|---|\n| a | 98,112 | 33.1 % | [r](receipt:3f9c) |\n")
    assert [item.link is not None for item in row] == [True, True]


def test_a_link_defined_below_is_followed() -> None:
    (item,) = found("It runs at [98k tok/s][r1].\n\n[r1]: receipt:3f9c\n")
    assert item.link is not None
    assert item.link.receipts == ("3f9c",)


def test_a_linked_number_that_names_nothing_is_a_statement_of_nothing() -> None:
    (item,) = found("Dropping it was worth [13 %](receipt:81aa..3f9c).")
    assert (item.metric, item.values) == ("unnamed", (13.0,))
    assert found("Dropping it was worth 13 %.") == []


def test_a_link_that_backs_nothing_and_one_that_cannot_be_read_are_told() -> None:
    (remark,) = remarks("See [the run](receipt:3f9c).")
    assert "backs no number" in remark.text
    (item,) = found("[98k tok/s](receipt:a..b..c)")
    assert item.link is not None
    assert "BASELINE..CANDIDATE" in item.link.problem


def test_an_ignore_comment_needs_a_reason() -> None:
    (item,) = found("<!-- receipts: ignore quoted from the vendor -->\nIt is 4 s/step.\n")
    assert item.ignored == "quoted from the vendor"
    (bare,) = found("It is 4 s/step. <!-- receipts: ignore -->")
    assert bare.ignored == ""
    assert remarks("It is 4 s/step. <!-- receipts: ignore -->")[0].text == "an ignore comment without a reason"


def test_an_ignore_comment_reaches_its_line_its_block_or_its_table_and_no_further() -> None:
    block = "<!-- receipts: ignore vendor -->\nIt is 4 s/step\nand 98k tok/s.\n\nIt is 3 s/step.\n"
    assert [item.ignored for item in found(block)] == ["vendor", "vendor", ""]
    line = "It is 4 s/step, <!-- receipts: ignore vendor -->\nand we saw 98k tok/s.\n"
    assert [item.ignored for item in found(line)] == ["vendor", ""]
    table = "<!-- receipts: ignore vendor -->\n\n| tok/s |\n|---|\n| 98,112 |\n| 91,004 |\n\nNow 98k tok/s.\n"
    assert [item.ignored for item in found(table)] == ["vendor", "vendor", ""]


@pytest.mark.parametrize("statement", ["9 tokens/s, ", "12.3 TFLOP/s "])
def test_what_each_statement_of_an_endless_line_looks_at_is_bounded(
    statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def read(text: str, links: tuple[tuple[int, int], ...]) -> tuple[Statement, ...]:
        sizes.append(len(text))
        return in_sentence(text, links)

    in_sentence = prose.in_sentence
    monkeypatch.setattr(prose, "in_sentence", read)
    assert len(found(statement * 300)) > 290
    assert len(sizes) > 3
    assert max(sizes) <= 1000


def test_a_file_that_is_no_page_by_its_size_is_refused(tmp_path: Path) -> None:
    large = tmp_path / "all.md"
    with large.open("wb") as stream:
        stream.truncate(verbs.MAX_PAGE + 1)
    with pytest.raises(UsageError, match=r"all\.md: it has more than 8 MiB"):
        list(verbs.pages([str(large)]))


@pytest.mark.slow
@pytest.mark.parametrize("statement", ["word 98k tok/s ", "It held 98k tok/s there\n", "It held 98k tok/s there.\n\n"])
def test_work_grows_with_an_endless_line_paragraph_or_page_and_no_faster(statement: str) -> None:
    def lines(number: int) -> int:
        seen = [0]
        prose.in_sentence.cache_clear()  # parts of an endless line are alike
        done = lines_run(lambda: seen.append(len(found(statement * number))))
        assert seen[-1] >= 0.95 * number
        return done

    assert lines(800) < 2.2 * lines(400)
