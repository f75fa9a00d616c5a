"""Arithmetic that needs no receipt: what figures beside each other give, and what a strangers' page must not cost."""

from __future__ import annotations

import pytest

from receipts.judging.rulebook import Rulebook
from receipts.plugins.lint.check import Checker, LintResult
from receipts.plugins.lint.page import page


def linted(text: str) -> list[LintResult]:
    """The results of a page, none of whose statements is linked."""
    return Checker(Rulebook(), lambda: pytest.fail("no statement names a receipt")).check(page(text, "a.md"))


@pytest.mark.parametrize(
    "text",
    [
        "Without it a step takes 0.52 s/step, and with it 0.41 s/step: a 45 % speed-up.",
        "Throughput went from 88.1k to 93.7k tok/s (+16.4 %).",
        "The step takes 695 ms instead of 747 ms, a 17.0 % reduction in time.",
        "It has 5.2 times the throughput of the old one (4,312 vs 1,037 tok/s/chip).",
        "We see 412 TFLOP/s/GPU, 52 % MFU of the 989 TFLOP/s peak.",
        "We reached 1.05e5 tok/s at 104 % MFU.",
        "Each H100 sustained 4,412 TFLOP/s/GPU.",
        "Peak memory is 97 GiB per GPU on the H100.",
        "| run | before | after | Δ |\n|---|---|---|---|\n| step time (ms) | 812 | 640 | −41.2 % |\n",
        "| run | tok/s |\n|---|---|\n| a | 98.1k → 101.2k (+9.2%) |\n",
    ],
)
def test_a_figure_that_the_figures_beside_it_contradict_is_refuted(text: str) -> None:
    refuted = [item for item in linted(text) if item.state == "refuted"]
    assert [item.code for item in refuted] == ["K103"], refuted


@pytest.mark.parametrize(
    "text",
    [
        "Without it a step takes 0.52 s/step, and with it 0.41 s/step: a 27 % speed-up.",
        "Without it a step takes 0.52 s/step, and with it 0.41 s/step: 21 % less time.",
        "Throughput went from 88.1k to 93.7k tok/s (+6.4 %), 20 % faster than the other stack.",
        "At 2k we get 100k tok/s and at 8k 52k tok/s, 20 % faster than a week ago.",
        "The step takes 695 ms instead of 747 ms, a 7.0 % reduction in time.",
        "The two arms have the same allocated peak (61,378 vs 61,154 MB, +0.4 %).",
        "It has 4.16 times the throughput of the old one (4,312 vs 1,037 tok/s/chip).",
        "It went from 100k to 150k tok/s, 30 % less memory and all.",
        "We see 412 TFLOP/s/GPU, 41.7 % MFU of the 989 TFLOP/s peak.",
        "The cluster of 8 H100 sustained 3,300 TFLOP/s.",
        "Peak memory is 640 GB on 8 H100.",
        "MFU is now 41.2 %, which is 1.2 points above the MFU of last week.",
        "| run | before | after | Δ |\n|---|---|---|---|\n| step time (ms) | 812 | 640 | −21.2 % |\n",
        "| run | before | after | speedup |\n|---|---|---|---|\n| step time (ms) | 812 | 640 | 1.27× |\n",
        "| run | tok/s |\n|---|---|\n| a | 98.1k → 101.2k (+3.2%) |\n",
    ],
)
def test_a_figure_that_the_figures_beside_it_give_is_not(text: str) -> None:
    results = linted(text)
    assert results
    assert {item.state for item in results} == {"unreceipted"}, results


@pytest.mark.parametrize(
    ("text", "metrics"),
    [
        ("| TP type | Average TPS | Speedup over vanilla TP |\n|---|---|---|\n| Vanilla TP | 612.4 | 1.00 |\n",
         ["tokens_per_second", "tokens_per_second"]),
        ("| run | tok/s | step time |\n|---|---|---|\n| first (crashed at 4367) | 1,485,929 | 22.58 s |\n",
         ["tokens_per_second", "step_seconds"]),
        ("This is a 6.0 % reduction in time and a 6.4 % speedup.", []),
        ("The two arms have the same allocated peak (61,378 vs 61,154 MB, +0.4 %).", ["peak_bytes"]),
        ("| Metric | old | ours | delta |\n|---|---|---|---|\n| CORE | 0.2690 | 0.2586 | -3.9% |\n", []),
        ("| | run 6 | this |\n|---|---|---|\n| training time | 99.0 min | 81.8 min |\n", []),
        ("| Model | Throughput | Peak Memory |\n|---|---|---|\n| A | 86.9K → 85.5K (-1.6%) | 57.2 → 56.1 GB (-1) |\n",
         ["tokens_per_second", "tokens_per_second", "peak_bytes"]),
        ("# Step times\n\n| model | new trainer | older fork |\n|---|---|---|\n| 8B | 1.625s | 1.71s |\n",
         ["step_seconds", "step_seconds"]),
        ("The run has a peak HBM of 91.9 G.\n\n| scale | step | peak HBM |\n|---|---|---|\n| 256 | 30.4 s | 92.3 G |\n",
         ["peak_bytes", "step_seconds", "peak_bytes"]),
        ("Mean steady step time: 208.7 ms (std 1.5 ms). Peak HBM 5.1 GB of 95.7 GB.", ["step_seconds", "peak_bytes"]),
        ("torch.compile takes half as long here. The compilation overhead is 30.4 seconds.", ["compile_seconds"]),
        ("vLLM measured 5,215 decode tok/s.", ["tokens_per_second"]),
        ("Nothing changed – 394 seconds per step.", ["step_seconds"]),
        ("Gates on attention: +1GB memory and less efficiency.", ["peak_bytes"]),
        ("It does not show that it is 25 % slower. FP8 has ~2x theoretical throughput. It has 100 % utilization.", []),
        ("- FP8 matmul (static scales): 10.31 ms (1.64x faster)", []),
        ("A reduce scatter is 2x faster than an all-reduce, and it halves the attention (2x in the backward).", []),
        ("With fused attention a step is 1.3x faster.", []),
        ("| config | forward | speedup |\n|---|---|---|\n| BF16 + compile | 2.00ms | 1.00x |\n", ["tokens_per_second"]),
        ("Dropping it was worth 13 %. Data is 20 % cheaper, accuracy rose by 3 %, and it took 2 hours 46 minutes.", []),
        ("The dataset has 300 GiB, the checkpoint takes 41 GiB and the card has 141 GiB of memory.", []),
    ],
)  # fmt: skip
def test_a_strangers_page_is_read_as_a_careful_person_reads_it(text: str, metrics: list[str]) -> None:
    results = linted(text)
    assert {item.state for item in results} <= {"unreceipted"}
    assert [item.statement.metric for item in results if item.statement] == metrics
