"""Sight: steps, tokens and the model of loops that say nothing; the parts of it that need no torch, and loops that do.

RECEIPTS_LAB_PYTHON names the interpreter of an environment that has torch; the loops of `sight_jobs.py` share one
process.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from array import array
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probe_stage import lab
from receipts.emit import Recorder
from receipts.emit.losses import Kept, StepLoss, StepNorm
from receipts.emit.sight import look
from receipts.emit.sight.inputs import EVERY, InputReader, batch_of
from receipts.emit.sight.layout import Pipeline
from receipts.emit.sight.model import count_backward, trained
from receipts.emit.sight.steps import PATIENCE, Anchor

CHECKOUT = Path(__file__).resolve().parents[2]
JOBS = Path(__file__).with_name("sight_jobs.py")
STEPS = 12


class Optimizer:
    pass


def ends(calls: str, known: str = "") -> list[int]:
    """At which of these calls of optimizers, a letter each, a step ends; ``known`` are all that the job holds."""
    optimizers = {name: Optimizer() for name in {*calls, *known}}
    ended: list[int] = []
    anchor = Anchor(lambda now, told: ended.append(now))
    anchor.known([optimizers[name] for name in known])
    for number, name in enumerate(calls):
        anchor.stepped(optimizers[name], number, None)
    anchor.give_up()
    return ended


def test_the_only_optimizer_ends_each_step_at_once() -> None:
    assert ends("aaa", "a") == [0, 1, 2]


def test_of_two_that_take_turns_the_second_ends_the_step() -> None:
    assert ends("abababab", "ab") == [1, 3, 5, 7]


def test_a_critic_that_trains_five_times_ends_no_step() -> None:
    assert ends("cccccm" * 4, "cm") == [5, 11, 17, 23]


def test_an_optimizer_that_never_steps_is_waited_for_no_longer_than_patience() -> None:
    assert ends("a" * (PATIENCE + 2), "ax") == list(range(PATIENCE + 2))


def test_a_run_that_ends_while_it_is_undecided_has_its_steps() -> None:
    assert ends("aaa", "ax") == [0, 1, 2]


class Tensor:
    """As much of a tensor as tells a batch."""

    _base: Tensor | None = None
    _version = 0
    device = SimpleNamespace(type="cuda")

    def __init__(self, shape: tuple[int, ...], dtype: str = "torch.int64", step: int = 128) -> None:
        self.shape, self.dtype = shape, dtype
        self.dim, self.stride, self.storage_offset = lambda: len(shape), lambda: (step, 1), lambda: 0

    def numel(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count

    def is_floating_point(self) -> bool:
        return "float" in self.dtype


IMAGE, IDS, LABELS = Tensor((8, 3, 32, 32), "torch.float32"), Tensor((4, 128)), Tensor((8,))


def test_ids_are_sequences_of_tokens_and_a_row_of_values_counts_as_one() -> None:
    assert batch_of((IDS,), {}, Tensor) == (4, 128, True)
    assert batch_of((), {"labels": Tensor((4, 100)), "input_ids": IDS}, Tensor) == (4, 128, True)
    assert batch_of(({"input_ids": IDS, "attention_mask": Tensor((4, 128))},), {}, Tensor) == (4, 128, True)
    assert batch_of((IMAGE,), {}, Tensor) == (8, 1, False)
    assert batch_of((IMAGE, LABELS), {}, Tensor) == (8, 1, False), "the labels of images are no tokens"
    assert batch_of(("x",), {}, Tensor) is None


@pytest.mark.parametrize(
    ("batches", "one"),
    [
        ([IDS] * 6, True),
        ([Tensor((4, 128)) for _ in range(6)], False),
        ([Tensor((4, 128), step=0) for _ in range(6)], True),
        ([Tensor((1, 128), step=0) for _ in range(6)], False),
        ([Tensor((4, 128)) for _ in range(12)] + [IDS] * 80, True),
        ([IDS] * 12 + [Tensor((4, 128)) for _ in range(80)], False),
        ([item for _ in range(20) for item in [Tensor((4, 128))] * 2], False),
        ([Tensor((4, 128)), *(item for _ in range(90) for item in [Tensor((4, 128))] * 2)], False),
        ([Tensor((4, 128), "torch.float32")] * 6, False),
        ([IMAGE] * 6, True),
    ],
    ids=[
        *("one tensor", "fresh ones", "one row expanded", "one row", "one tensor after the warm-up"),
        *(
            "one tensor in the warm-up alone",
            "each twice",
            "each twice from the second on",
            "all features of a small set",
            "one batch of images",
        ),
    ],
)
def test_a_loop_that_is_given_one_batch_again_and_again_is_told_from_one_that_is_not(
    batches: list[Tensor], one: bool
) -> None:
    reader = InputReader(SimpleNamespace(Tensor=Tensor), list, list, print)
    for batch in batches:
        reader.forwards += 1
        if reader.forwards < EVERY or reader.forwards % EVERY < 2:
            reader._compare((batch,), {})
    assert reader.repeats is one


def test_a_batch_that_is_written_anew_in_its_place_is_another() -> None:
    reader, batch = InputReader(SimpleNamespace(Tensor=Tensor), list, list, print), Tensor((4, 128))
    for _ in range(6):
        reader.forwards += 1
        batch._version += 1
        reader._compare((batch,), {})
    assert not reader.repeats


def test_a_batch_on_the_host_whose_numbers_move_is_another() -> None:
    drawn = itertools.count()

    class OnHost(Tensor):
        device = SimpleNamespace(type="cpu")

        def __getitem__(self, _row: int) -> SimpleNamespace:
            return SimpleNamespace(flatten=lambda: array("q", [next(drawn)]))

    reader, batch = InputReader(SimpleNamespace(Tensor=Tensor), list, list, print), OnHost((4, 128))
    for _ in range(6):
        reader.forwards += 1
        reader._compare((batch,), {})
    assert not reader.repeats


def test_a_batch_without_a_version_is_counted_all_the_same() -> None:
    torch = SimpleNamespace(Tensor=Tensor, is_grad_enabled=lambda: True, is_autocast_enabled=lambda _: False)
    faults: list[object] = []
    reader, batch = InputReader(torch, list, list, lambda *given: faults.append(given)), Tensor((4, 128))
    batch.device = SimpleNamespace(type="cpu")
    del batch.stride
    reader.look(0, True, (batch,), {})
    assert (reader.tokens, faults) == (512, [])


def test_a_weight_that_no_optimizer_has_is_not_trained() -> None:
    weights = [SimpleNamespace(requires_grad=True, numel=lambda: 10) for _ in range(4)]
    whole, half, copies = (
        SimpleNamespace(param_groups=[{"params": own}]) for own in (weights, weights[:2], [SimpleNamespace()])
    )
    assert trained(weights, [whole]) == trained(weights, [half, whole]) == "none"
    assert trained(weights, [half]) == "partial"
    assert trained(weights, [copies]) == trained(weights, []) == "none"


def test_losses_that_were_divided_are_summed_and_others_averaged() -> None:
    assert StepLoss([1.0, 2.0], 2.0)() == 3.0
    assert StepLoss([4.0, 6.0], None)() == 5.0


def test_a_norm_that_the_scaler_skips_is_none_and_any_other_stays() -> None:
    assert StepNorm([float("inf")], scaled=True)() is None
    assert StepNorm([float("inf")], scaled=False)() == float("inf")
    assert StepNorm([3.0, 4.0], scaled=False)() == 5.0


def test_what_was_kept_before_a_step_ended_is_the_steps() -> None:
    kept = Kept()
    for value in (1, None, 3, 4):
        kept.keep(value)
    assert kept.take(3) == [1, 3]
    assert kept.take(4) == [4]


@pytest.fixture(scope="module")
def loops(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    python = lab("RECEIPTS_LAB_PYTHON", "torch")
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT), "OMP_NUM_THREADS": "1"}
    words = [python, str(JOBS), str(tmp_path_factory.mktemp("sight"))]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    read: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return read


@pytest.mark.slow
def test_every_loop_has_its_steps_and_one_model_has_one_digest(loops: dict[str, Any]) -> None:
    cases = loops["cases"]
    assert {name: len(case["measurement"]["step_durations_seconds"]) for name, case in cases.items()} == dict.fromkeys(
        cases, STEPS
    )
    digests = {name: case["model"]["architecture"] for name, case in cases.items()}
    others = {digests.pop(name) for name in ("critic_five_times", "modules_of_its_own", "adapted_by_hand")}
    assert len(set(digests.values())) == 1, digests
    assert len(others) == 3
    assert others.isdisjoint(digests.values())


@pytest.mark.slow
def test_who_computes_less_where_no_trace_looks_is_seen_at_moments_that_he_does_not_know(loops: dict[str, Any]) -> None:
    assert loops["counted"]["honest"] is None
    (counter,) = loops["counted"]["shirking"]
    assert counter["name"] == look.NAME
    assert counter["count"] < counter["expected"] - 1


@pytest.mark.slow
def test_what_runs_without_gradients_before_each_step_is_part_of_it(loops: dict[str, Any]) -> None:
    case = loops["cases"]["generated_before_each_step"]
    assert len(case["measurement"]["step_flags"].get("eval", ())) < 3
    assert case["model"]["name"] == "Decoder"
    batch = loops["cases"]["two_calls_for_one_loss"]["batch"]
    assert (batch["micro_batch"], batch["accumulation"], batch["global_batch"]) == (3, 2, 6)


class Block:
    """As a module that has parameters."""

    def __init__(self, **parts: Block) -> None:
        self._modules = parts

    def parameters(self) -> Iterator[int]:
        return iter([1])


BLOCKS = [Block(attn=Block(), mlp=Block()) for _ in range(2)]


@pytest.mark.parametrize(
    ("checkpoints", "options", "passes", "applied"),
    [
        ([], {}, (4, 4), None),
        (BLOCKS, {}, (0, 0), "full"),
        (BLOCKS[:1], {}, (0, 0), "selective"),
        ([part for block in BLOCKS for part in block._modules.values()], {}, (0, 0), "full"),
        (BLOCKS, {"context_fn": "policy"}, (0, 0), "selective"),
        ([None], {}, (4, 2), "full"),
        ([None], {}, (3, 2), "selective"),
    ],
    ids=["nothing", "each block", "one block", "all parts", "a policy", "a function twice", "a function of some"],
)
def test_what_the_compiler_traces_to_be_computed_again_is_all_or_some(
    monkeypatch: pytest.MonkeyPatch,
    checkpoints: list[Any],
    options: dict[str, str],
    passes: tuple[int, int],
    applied: str | None,
) -> None:
    monkeypatch.setattr("receipts.emit.profiling.attention_passes", passes)
    traced = look.Checkpoints()
    for item in checkpoints:
        traced.take(Block, SimpleNamespace(obj=SimpleNamespace(value=item)), options)
    assert look.recompute(None, traced, BLOCKS) == applied


def test_a_rank_that_joins_a_group_after_the_start_has_its_place_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rec = Recorder("cpu-torch", out=tmp_path / "run.json", quiet=True, probes=False).start()
    monkeypatch.setattr("receipts.emit.identity.torch_processes", lambda: (1, 2))
    monkeypatch.setattr("receipts.emit.identity.agreed_in_group", lambda: "agreed")
    for _ in range(3):
        with rec.step(tokens=8):
            pass
    rec.finish()
    part = json.loads((tmp_path / "run.rank00001.part.json").read_bytes())
    assert (part["launch"], part["rank"], part["world"]) == ("agreed", 1, 2)


def glance(work: float, gradients: int, tokens: int = 512, attention: float = 8) -> look.Glance:
    item = look.Glance()
    item.work, item.gradients, item.tokens = {"torch.float32": work}, gradients, tokens
    item.attention = attention
    return item


class Node:
    """A node of autograd's graph."""

    def __init__(self, name: str, *following: Node | None) -> None:
        self.name, self.next_functions = lambda: name, [(item, 0) for item in following]


def test_attention_in_the_graph_of_a_loss_is_counted_once_wherever_it_is_reached_from() -> None:
    attends = Node("ScaledDotProductFlashAttentionForCpuBackward0", Node("AddmmBackward0", None))
    by_hand = Node("BmmBackward0", attends)
    seen = look.Glances(SimpleNamespace(autograd=None), None)  # type: ignore[arg-type]  # it looks at nothing
    seen.open = item = look.Glance()
    seen.graph([SimpleNamespace(grad_fn=Node("AddBackward0", by_hand, attends)), SimpleNamespace()])
    assert (item.attention, item.losses) == (2, 1)


@pytest.mark.parametrize(
    ("others", "experts", "counted"),
    [
        ([(90, 100)] * 6, False, None),
        ([(30, 100)] * 4 + [(100, 100)] * 2, False, (2, 6)),
        ([(100, 20)] * 4 + [(100, 100)] * 2, False, (2, 6)),
        ([(100, 20)] * 6, True, None),
        ([(100, 100, 512, 2)] * 4 + [(100, 100)] * 2, False, (2, 6)),
        ([(30, 100)] + [(100, 100)] * 5, False, None),
        ([(30, 100)] * 2 + [(100, 100)] * 3, False, (3, 5)),
        ([(30, 100, 200)] * 2 + [(100, 100)] * 3, False, None),
    ],
    ids=[
        *("as traced", "fewer layers", "fewer gradients", "experts without a token", "no attention", "one odd step"),
        *("two of five", "two of five, of another length"),
    ],
)
def test_glances_below_the_traced_steps_are_counted(
    others: list[tuple[Any, ...]], experts: bool, counted: tuple[int, int] | None
) -> None:
    told: list[tuple[int, int]] = []

    class Stated:
        def counter(self, name: str, count: int, *, expected: int, steps: int) -> None:
            told.append((count, expected))

    seen = look.Glances(SimpleNamespace(autograd=None), None)  # type: ignore[arg-type]  # it looks at nothing
    seen.traced = [glance(100, 100)]
    seen.others = [glance(*item) for item in others]
    seen.experts = experts
    seen.state(Stated())  # type: ignore[arg-type]  # it counts
    assert told == ([counted] if counted else [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "tokens"),
    [("plain", 24), ("accumulated_and_evaluated", 96), ("critic_five_times", 6), ("searching_closure", 24)]
    + [(name, 24) for name in ("compiled_module", "compiled_in_place", "compiled_lambda", "one_optimizer_a_parameter")]
    + [("one_batch_and_two_losses", 24), ("compiled_with_its_backward_pass", 24), ("two_calls_for_one_loss", 48)],
)
def test_tokens_are_those_of_the_batch(loops: dict[str, Any], name: str, tokens: int) -> None:
    case = loops["cases"][name]
    assert case["measurement"]["tokens_per_step"] == tokens
    batch = case["batch"]
    assert batch["global_batch"] * batch["sequence_length"] == tokens
    assert batch["micro_batch"] * batch["accumulation"] == batch["global_batch"]


@pytest.mark.slow
def test_geometry_numerics_and_posture_are_seen(loops: dict[str, Any]) -> None:
    cases = loops["cases"]
    seen = cases["plain"]["model"]
    wanted = {"depth": 3, "hidden": 16, "vocabulary": 40, "heads": 2, "ffn": 64, "tied_embeddings": True}
    assert {name: seen[name] for name in wanted} == wanted
    assert (seen["pattern"], seen["attention_kinds"]) == ("[*-]", "3 full")
    assert cases["critic_five_times"]["model"]["vocabulary"] == 0
    assert cases["autocast"]["numerics"]["compute_dtype"] == "bf16"
    for name in ("checkpointed", "checkpointed_by_its_forward"):
        assert cases[name]["numerics"]["recompute"] == "full"
    assert cases["plain"]["numerics"]["recompute"] == "none"
    assert cases["adapted"]["numerics"]["adapters"] == {"kind": "lora", "rank": 2, "injected": "before_sharding"}
    assert cases["adapted_by_hand"]["numerics"]["adapters"] == {
        "kind": "lora",
        "rank": 2,
        "injected": "before_sharding",
    }
    assert loops["breaks"] == [1], "the backward pass itself ends the graph, and nothing that listens does"
    assert [cases[name]["posture"] for name in ("plain", "compiled_module")] == ["eager", "whole_graph"]


@pytest.mark.slow
def test_losses_and_norms_are_those_of_the_step(loops: dict[str, Any]) -> None:
    measured = {name: case["measurement"] for name, case in loops["cases"].items()}
    first = [measured[name]["loss"]["first"] for name in ("accumulated_and_evaluated", "accumulated_and_not_divided")]
    assert first[0] == pytest.approx(first[1], rel=1e-3), "one objective, written in two ways"
    assert measured["unwatched_optimizer_and_no_clipping"]["gradient_norm"]["last"] > 0
    scaled = measured["scaled_with_overflow"]
    assert scaled["gradient_norm"]["finite"] is True
    assert [row["count"] for row in scaled["path_counters"]] == [2], "two steps were skipped"
    assert measured["accumulated_and_evaluated"]["step_flags"]["eval"] == [9]


@pytest.mark.slow
def test_what_the_job_states_wins_and_a_difference_is_noted(loops: dict[str, Any]) -> None:
    case = loops["cases"]["marked_by_the_job"]
    assert case["measurement"]["tokens_per_step"] == 1000
    assert case["measurement"]["loss"]["last"] == 7.0
    assert case["model"]["depth"] == 4
    notes = json.dumps(case["notes"])
    assert "model.depth: it saw 3, and caller states 4" in notes
    assert "it saw 24 in the usual step" in notes


@pytest.mark.slow
def test_lengths_that_vary_are_no_sequence_length(loops: dict[str, Any]) -> None:
    batch = loops["cases"]["lengths_that_vary"]["batch"]
    assert batch["ragged"] is True
    assert "sequence_length" not in batch


@pytest.mark.slow
def test_nothing_is_left_in_torch(loops: dict[str, Any]) -> None:
    assert loops["left"] == {"hooks": 0, "backward": "torch.autograd", "save": "torch.serialization"}


@pytest.mark.slow
def test_the_private_names_of_torch_are_there(tmp_path: Path) -> None:
    python = lab("RECEIPTS_LAB_PYTHON", "torch")
    code = (
        "import sys, torch, torch._dynamo, torch.amp.grad_scaler as g, torch.nn.utils.clip_grad as c\n"
        "m = torch.nn.Linear(1, 1); m.compile(backend='eager'); p = sys.modules['torch.autograd.profiler']\n"
        "o = type(torch.compile(m, backend='eager')).__name__\n"
        "print(hasattr(c, '_clip_grads_with_norm_'), '_compiled_call_impl' in vars(m), o,"
        " {'__enter__', '__exit__'} <= set(vars(p.record_function)),"
        " {'scale', 'step', 'update'} <= set(vars(g.GradScaler)))"
    )
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "OptimizedModule", "True", "True"], "sight.hooks and sight.inputs"


def test_stages_of_a_pipeline_are_one_model_once_every_rank_has_told_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = {
        "seen": {"hidden": 64},
        "inferred": {"attention_kinds": "2 full"},
        "letters": ["[*-]"] * 2,
        "parameters": 5,
    }
    held = {"receipts/stage/L/0": json.dumps({**stage, "seen": {"hidden": 64, "vocabulary": 128}})}

    class Store:
        def check(self, keys: list[str]) -> bool:
            return set(keys) <= held.keys()

        def get(self, key: str) -> bytes:
            return held[key].encode()

    class Stage:
        stage_index, num_stages, group_size = 0, 2, 2

        def submod(self) -> None: ...

    pipeline = Pipeline([Stage()], [])
    pipeline._key = "receipts/stage/L"
    monkeypatch.setattr(pipeline, "_store", Store)
    pipeline.join()
    assert pipeline.whole == {}
    held["receipts/stage/L/1"] = json.dumps({**stage, "seen": {"hidden": 64, "vocabulary": 0}})
    pipeline.join()
    assert {name: pipeline.whole[name] for name in ("depth", "pattern", "parameters_total", "vocabulary")} == {
        "depth": 4,
        "pattern": "[*-]",
        "parameters_total": 10,
        "vocabulary": 128,
    }
    assert pipeline.whole["attention_kinds"] == "4 full"


@pytest.mark.parametrize(
    ("passes", "counted"),
    [([1] * 40, None), ([0] * 40, None), ([2, 2, 0, 2, 2], None), ([1, 0, 0, 0] * 10, (10, 40))],
    ids=["every step", "gradients made otherwise", "one odd step", "three of four skipped"],
)
def test_steps_of_the_optimizer_without_a_backward_pass_are_counted(
    passes: list[int], counted: tuple[int, int] | None
) -> None:
    told: list[tuple[int, int]] = []

    class Stated:
        def counter(self, name: str, count: int, *, expected: int, steps: int) -> None:
            told.append((count, expected))

    count_backward([(backwards, 1, 512, 8) for backwards in passes], Stated())  # type: ignore[arg-type]  # it counts
    assert told == ([counted] if counted else [])
