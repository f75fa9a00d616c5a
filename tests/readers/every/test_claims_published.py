"""Published sentences of modded-nanogpt are supported or refuted from its logs alone, with their intervals."""

from __future__ import annotations

import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

import rule_cases
from receipts.ingest.assembly import assemble
from receipts.ingest.draft import Options
from receipts.ingest.evidence import read
from receipts.judging.claim import parse_claims as claims_of
from receipts.judging.facts import Facts
from receipts.judging.verdict import ClaimVerdict
from receipts.questions.claims.judgment import ClaimEvidence, judge
from receipts.receipt import Document, Parsed, parse
from thorough import unless_thorough

pytestmark = pytest.mark.slow

CASES = Path(__file__).resolve().parents[4] / "shared/cases/published/modded-nanogpt.tar.xz"
RULE = "=" * 100
DRIVER = "| NVIDIA-SMI 535.183.06   Driver Version: 535.183.06   CUDA Version: 12.2     |"
GPU = "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:19:00.0 Off |                    0 |"


def log(each: float, program: str) -> str:
    """Two hundred steps of ``each`` milliseconds, behind the program that ran."""
    text = f"import os\n    code = f.read()\n{program}\n{RULE}\n" if program else ""
    text += "Running Python 3.12.7\nRunning PyTorch 2.10.0+cu126 compiled for CUDA 12.6\n"
    text += (
        f"{RULE}\n{DRIVER}\n" + "".join(f"{GPU.replace('  0 ', f'  {gpu} ', 1)}\n" for gpu in range(8)) + f"{RULE}\n"
    )
    for step in range(1, 201):
        clock = round(step * each)
        text += f"step:{step}/200 train_time:{clock}ms step_avg:{clock / step:.2f}ms\n"
    return text + f"step:200/200 val_loss:3.2781 train_time:{round(200 * each)}ms step_avg:{each:.2f}ms\n"


def receipt(path: Path) -> Parsed:
    lanes = rule_cases.rulebook().lanes
    ingested = assemble([read(path, path.name)], Options(lanes=[lanes.get(name) for name in lanes.names()]))
    assert ingested.raw is not None, ingested.problems
    return parse(Document(ingested.raw, path.name))


def arm(folder: Path, name: str, milliseconds: Sequence[float], program: str) -> tuple[Parsed, ...]:
    launches = []
    for at, each in enumerate(milliseconds):
        path = folder / f"{name}-{at}.txt"
        path.write_text(log(each, program), encoding="utf-8")
        launches.append(receipt(path))
    return tuple(launches)


def judged(baseline: tuple[Parsed, ...], candidate: tuple[Parsed, ...], effect: str) -> ClaimVerdict:
    (claim,) = claims_of(
        (
            'schema_version = "1.0"\n[[claim]]\nid = "it"\ntext = "Training takes less time."\nkind = "speedup"\n'
            'baseline = ["a"]\ncandidate = ["b"]\nmetric = "training_seconds"\n'
            f'effect = "{effect}"\nquoted_in = ["README.md"]\n'
        ).encode(),
        "claims.toml",
    )
    return judge(claim, ClaimEvidence(baseline, candidate, Facts()), rule_cases.rulebook())


A, B = (100.0, 100.1, 99.95, 100.05), (99.0, 99.1, 98.95, 99.05)


@pytest.mark.parametrize(("effect", "status"), [("−1.0 % ± 0.3 %", "supported"), ("at least 1.05", "refuted")])
def test_a_record_is_judged_by_the_program_that_its_logs_print(tmp_path: Path, effect: str, status: str) -> None:
    verdict = judged(arm(tmp_path, "a", A, "depth = 12"), arm(tmp_path, "b", B, "depth = 11"), effect)
    assert (verdict.status, verdict.lanes) == (status, ("modded-nanogpt@1",))


def test_logs_without_their_program_prove_nothing(tmp_path: Path) -> None:
    verdict = judged(arm(tmp_path, "a", A, ""), arm(tmp_path, "b", B, ""), "−1.0 % ± 0.3 %")
    assert verdict.status == "unproven"


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logs of the two records, unpacked."""
    if not CASES.is_file():
        pytest.skip("the published logs are not here")
    root = tmp_path_factory.mktemp("records")
    with tarfile.open(CASES) as archive:
        archive.extractall(root, filter="data")
    return root / "records/track_1_short"


@pytest.mark.parametrize(
    ("record", "candidate", "effect"),
    [
        ("2026-01-18_UnifiedOptimizers", "unified-optimizer", unless_thorough("at least 1.005", "−1.02 % ± 0.2 %")),
        ("2026-05-19_FP8MLPUpProj", "this_record", unless_thorough("at least 1.005", "−0.92 % ± 0.2 %")),
    ],
)
def test_the_published_records_hold(records: Path, record: str, candidate: str, effect: str) -> None:
    a, b = (
        tuple(map(receipt, sorted((records / record / side).glob("*.txt"))[: unless_thorough(3, 8)]))
        for side in ("baseline", candidate)
    )
    assert judged(a, b, effect).status == "supported"
    assert judged(a, b, "at least 1.05").status == "refuted"
