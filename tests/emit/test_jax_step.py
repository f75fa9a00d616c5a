"""`Recorder.jit`: the step of JAX that states its program, and when its steps ended."""

from __future__ import annotations

import json
from array import array
from functools import partial
from pathlib import Path
from time import perf_counter_ns, sleep
from types import SimpleNamespace
from typing import Any

import pytest

from receipts.emit import Recorder
from receipts.emit.run_record import RunRecord
from receipts.emit.sight import jax_facts, jax_program
from receipts.emit.sight.jax_results import Landings
from receipts.emit.sight.jax_watch import JitWatch

ROWS, LENGTH, VOCABULARY, WIDTH, DEPTH, HEADS, MICROS = 2, 16, 48, 32, 3, 2, 2


@pytest.fixture(scope="module")
def jax() -> Any:
    return pytest.importorskip("jax")


class Result:
    """What stands for an array: it is there after so long."""

    def __init__(self, seconds: float = 0.0, error: Exception | None = None) -> None:
        self.due, self.error = perf_counter_ns() + int(seconds * 1e9), error

    def block_until_ready(self) -> None:
        if self.error is not None:
            raise self.error
        sleep(max(0, self.due - perf_counter_ns()) / 1e9)


def dispatched(count: int) -> tuple[RunRecord, list[int]]:
    """A record of steps that were dispatched within microseconds, and its words."""
    now = perf_counter_ns()
    words = array("q", [number for step in range(count) for number in (now + 1000 * (step + 1), 1000)])
    record = RunRecord({"host": "h"})
    record.blocks = [(words, 2 * count)]
    return record, [now + 1000 * (step + 1) for step in range(count)]


def test_a_step_ends_where_its_result_was_there() -> None:
    record, _ = dispatched(3)
    landings = Landings(0)
    for step in range(3):
        landings.put(Result(0.03 * (step + 1)))
    assert landings.close(record)
    first, *rest = record.durations()
    assert first >= 25_000_000
    assert all(20_000_000 <= item <= 500_000_000 for item in rest)


@pytest.mark.parametrize("results", [[Result()], [Result(), Result(error=RuntimeError("deleted"))]])
def test_a_step_without_an_end_leaves_the_times_of_the_calls(results: list[Result]) -> None:
    record, ends = dispatched(2)
    landings = Landings(0)
    for result in results:
        landings.put(result)
    assert not landings.close(record)
    assert [record.blocks[0][0][at] for at in (0, 2)] == ends


def decoder(jax: Any) -> tuple[Any, Any, Any]:
    """A decoder that is scanned and computed again in bf16, whose step scans micro batches; its weights, and tokens."""
    np, key = jax.numpy, jax.random.key(0)

    def weight(*shape: int) -> Any:
        return 0.05 * jax.random.normal(key, shape)

    blocks = {"qkv": weight(DEPTH, WIDTH, 3 * WIDTH), "up": weight(DEPTH, WIDTH, 80), "down": weight(DEPTH, 80, WIDTH)}
    weights = {"wte": weight(VOCABULARY, WIDTH), "out": weight(DEPTH, WIDTH, WIDTH), "blocks": blocks}

    @jax.checkpoint
    def block(x: Any, layer: Any) -> Any:
        q, k, v = (item.reshape(*x.shape[:2], HEADS, -1) for item in np.split(x @ layer[0]["qkv"], 3, -1))
        mixed = np.einsum("bhts,bshd->bthd", jax.nn.softmax(np.einsum("bthd,bshd->bhts", q, k)), v)
        x = x + mixed.reshape(x.shape) @ layer[1]
        return x + jax.nn.relu(x @ layer[0]["up"]) @ layer[0]["down"], None

    def loss(weights: Any, tokens: Any) -> Any:
        cast = jax.tree.map(lambda leaf: leaf.astype(np.bfloat16), weights)
        x, _ = jax.lax.scan(block, cast["wte"][tokens[:, :-1]], (cast["blocks"], cast["out"]))
        logits = jax.nn.log_softmax((x @ cast["wte"].T).astype(np.float32))
        return -np.take_along_axis(logits, tokens[:, 1:, None], -1).mean()

    def step(weights: Any, batch: Any) -> Any:
        def micro(total: Any, tokens: Any) -> Any:
            value, grads = jax.value_and_grad(loss)(weights, tokens)
            return jax.tree.map(np.add, total, grads), value

        grads, losses = jax.lax.scan(micro, jax.tree.map(np.zeros_like, weights), batch["tokens"])
        return jax.tree.map(lambda old, new: old - 0.1 * new, weights, grads), {"train/loss": losses.mean()}

    tokens = np.arange(MICROS * ROWS * (LENGTH + 1)).reshape(MICROS, ROWS, LENGTH + 1) % VOCABULARY
    return step, weights, {"tokens": tokens}


@pytest.fixture(scope="module")
def recorded(jax: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The receipt of six steps of donated weights, two with half the rows; `compiled` are its compiles."""
    from jax._src import monitoring

    compiled: list[str] = []

    def listen(name: str, _: float, **more: Any) -> None:
        if name.endswith("backend_compile_duration"):
            compiled.append(str(more.get("fun_name")))

    monitoring.register_event_duration_secs_listener(listen)
    out = tmp_path_factory.mktemp("jit") / "run.json"
    step, weights, batch = decoder(jax)
    rec = Recorder("cpu-jax", out=out, quiet=True)
    step = rec.jit(step, donate_argnums=0)
    for number in range(6):
        rows = batch if number < 4 else {"tokens": batch["tokens"][:, :1]}
        weights, metrics = step(weights, rows)
    assert metrics["train/loss"] > 0
    with pytest.raises(TypeError, match=r"abstract array|valid JAX type"):
        step(weights, {"tokens": "none"})
    rec.finish()
    receipt: dict[str, Any] = json.loads(Path(out).read_text())
    return receipt | {"compiled": [name for name in compiled if "step" in name], "folder": out.parent}


def test_the_program_states_batch_and_length_as_the_lookup_has_them(recorded: dict[str, Any]) -> None:
    batch = {"micro_batch": ROWS, "global_batch": MICROS * ROWS, "sequence_length": LENGTH, "accumulation": MICROS}
    assert recorded["batch"] == batch


def test_the_program_states_the_model(recorded: dict[str, Any]) -> None:
    model = {"pattern": "[*-]", "alphabet": "nemo", "depth": DEPTH, "hidden": WIDTH, "heads": HEADS, "kv_heads": HEADS}
    model |= {"head_dim": WIDTH // HEADS, "ffn": 80, "ffn_projections": 2, "vocabulary": VOCABULARY}
    weights = VOCABULARY * WIDTH + DEPTH * WIDTH * (4 * WIDTH + 160)
    assert len(recorded["model"].pop("architecture")) == 64
    model |= {"tied_embeddings": True, "attention_kinds": f"{DEPTH} full", "parameters_total": weights}
    assert recorded["model"] == model


def test_the_program_states_types_and_recomputation(recorded: dict[str, Any]) -> None:
    numerics = {"compute_dtype": "bf16", "parameter_dtype": "fp32", "recompute": "full", "adapters": {"kind": "none"}}
    assert recorded["numerics"] == numerics
    assert recorded["compile"]["posture"] == "jit"
    assert recorded["compile"]["temp_bytes"] > 0


def test_each_shape_of_the_step_is_compiled_once(recorded: dict[str, Any]) -> None:
    assert len(recorded["compiled"]) == 2


def test_programs_from_before_the_recorder_are_counted(recorded: dict[str, Any]) -> None:
    assert recorded["compile"]["compiles"] > 2
    assert recorded["compile"]["cache_state"] == "off"


def test_fewer_rows_are_fewer_tokens(recorded: dict[str, Any]) -> None:
    whole = MICROS * ROWS * LENGTH
    assert any(f"{whole} from step 0, {whole // 2} from step 4" in note for note in recorded["notes"]["recorder"])


def test_a_loss_is_found_by_its_name_and_the_jobs_error_reaches_the_job(recorded: dict[str, Any]) -> None:
    assert recorded["measurement"]["loss"]["finite"]
    assert len(recorded["measurement"]["step_durations_seconds"]) == 6
    assert recorded["measurement"]["synchronisation"] == "device"


def test_the_text_of_what_ran_lies_beside_the_receipt(recorded: dict[str, Any]) -> None:
    row = next(item for item in recorded["evidence"] if item["kind"] == "hlo")
    assert (recorded["folder"] / "run.hlo.txt.gz").is_file()
    assert len(row["sha256"]) == 64


def test_a_step_that_is_compiled_ahead_of_time_states_the_same(jax: Any, tmp_path: Path) -> None:
    rec = Recorder("cpu-jax", out=tmp_path / "run.json", quiet=True)

    @rec.jit(static_argnames="scale", loss=1)
    def step(table: Any, tokens: Any, scale: float) -> Any:
        def loss(table: Any) -> Any:
            return scale * (table[tokens] @ table.T).mean()

        value, grads = jax.value_and_grad(loss)(table)
        return table - grads, value

    table, tokens = jax.numpy.ones((8, 4)), jax.numpy.zeros((2, 5), int)
    compiled = step.lower(table, tokens, scale=2.0).compile()
    for _ in range(2):
        table, value = compiled(table, tokens)
    rec.finish()
    receipt = json.loads((tmp_path / "run.json").read_text())
    assert (receipt["model"]["vocabulary"], receipt["measurement"]["tokens_per_step"]) == (8, 10)
    assert receipt["measurement"]["loss"]["last"] == pytest.approx(float(value))


def test_a_step_without_tokens_states_its_rows(jax: Any, tmp_path: Path) -> None:
    rec = Recorder("cpu-jax", out=tmp_path / "run.json", quiet=True)
    step = rec.jit(lambda weights, x: (weights - jax.grad(lambda w: ((x @ w) ** 2).mean())(weights), SimpleNamespace))
    with pytest.raises(TypeError):
        step(jax.numpy.ones((3, 1)), jax.numpy.ones((2, 3)))
    step = rec.jit(lambda weights, x: weights - jax.grad(lambda w: ((x @ w) ** 2).mean())(weights))
    step(jax.numpy.ones((3, 1)), jax.numpy.ones((2, 3)))
    rec.finish()
    receipt = json.loads((tmp_path / "run.json").read_text())
    assert receipt["batch"]["micro_batch"] == 2
    assert (receipt["model"]["vocabulary"], receipt["model"]["parameters_total"]) == (0, 3)
    assert receipt["numerics"]["compute_dtype"] == "fp32"


def small(jax: Any, tokens: Any, weights: Any) -> Any:
    """Loss and gradients of a table and a head."""

    def loss(weights: Any) -> Any:
        logits = jax.nn.log_softmax(weights["wte"][tokens] @ (weights["head"] + weights.get("a", 0) @ weights["b"]))
        return -np.take_along_axis(logits, tokens[..., None], -1).mean()

    np = jax.numpy
    return jax.value_and_grad(loss)(weights)


def norm_of(jax: Any, gradients: Any) -> float:
    return float(jax.numpy.sqrt(sum(jax.numpy.sum(leaf**2) for leaf in jax.tree.leaves(gradients))))


def weights(jax: Any) -> Any:
    ones = jax.numpy.ones
    table = {"wte": ones((VOCABULARY, WIDTH)), "head": ones((WIDTH, VOCABULARY))}
    return table | {"a": ones((WIDTH, 2)), "b": ones((2, VOCABULARY))}


class TestLoops:
    """Calls that make several steps, methods, and functions that nobody gave to the recorder."""

    def test_steps_of_a_loop_within_one_call_share_its_time(self, jax: Any, tmp_path: Path) -> None:
        def one(held: Any, tokens: Any) -> Any:
            loss, grads = small(jax, tokens, held)
            return jax.tree.map(lambda old, new: old - new, held, grads), loss

        rec = Recorder("cpu-jax", out=tmp_path / "run.json", quiet=True, warmup=1)
        step = rec.jit(lambda held, data: jax.lax.scan(one, held, data))
        held = weights(jax)
        for _ in range(2):
            held, losses = step(held, jax.numpy.zeros((3, ROWS, LENGTH), int))
        rec.finish()
        receipt = json.loads((tmp_path / "run.json").read_text())
        measured = receipt["measurement"]
        first = small(jax, jax.numpy.zeros((ROWS, LENGTH), int), weights(jax))[1]
        assert measured["gradient_norm"]["last"] == pytest.approx(norm_of(jax, first))
        assert measured["tokens_per_step"] == ROWS * LENGTH == receipt["batch"]["global_batch"] * LENGTH
        assert len(measured["step_durations_seconds"]) == 6
        assert measured["loss"]["last"] == pytest.approx(float(losses[-1]))

    def test_an_unnamed_loss_and_norm_are_told_apart(self, jax: Any, tmp_path: Path) -> None:
        np = jax.numpy

        def step(held: Any, tokens: Any) -> Any:
            loss, grads = small(jax, tokens, held)
            norm = np.sqrt(sum(np.sum(leaf**2) for leaf in jax.tree.leaves(grads)))
            return jax.tree.map(lambda old, new: old - new, held, grads), (norm, loss)

        rec = Recorder("cpu-jax", out=tmp_path / "run.json", quiet=True)
        _, (norm, loss) = rec.jit(step)(weights(jax), np.zeros((ROWS, LENGTH), int))
        rec.finish()
        measured = json.loads((tmp_path / "run.json").read_text())["measurement"]
        assert (measured["loss"]["last"], measured["gradient_norm"]["last"]) == pytest.approx(
            (float(loss), float(norm))
        )

    def test_a_running_total_is_no_loss(self, jax: Any, tmp_path: Path) -> None:
        def step(held: Any, total: Any, tokens: Any) -> Any:
            loss, grads = small(jax, tokens, held)
            return jax.tree.map(lambda old, new: old - new, held, grads), total + loss

        rec = Recorder("cpu-jax", out=tmp_path / "run.json", quiet=True)
        rec.jit(step)(weights(jax), jax.numpy.zeros(()), jax.numpy.zeros((ROWS, LENGTH), int))
        rec.finish()
        assert "loss" not in json.loads((tmp_path / "run.json").read_text())["measurement"]

    def test_a_norm_that_the_step_keeps_is_computed_beside_it(self, jax: Any, tmp_path: Path) -> None:
        np, batches = jax.numpy, jax.numpy.arange(2 * ROWS * LENGTH).reshape(2, ROWS, LENGTH) % VOCABULARY

        def step(held: Any, batches: Any) -> Any:
            def micro(total: Any, tokens: Any) -> Any:
                loss, grads = small(jax, tokens, held)
                return jax.tree.map(np.add, total, grads), loss

            total, losses = jax.lax.scan(micro, jax.tree.map(np.zeros_like, held), batches)
            return jax.tree.map(lambda old, new: old - 0.1 * (new / 2), held, total), losses.mean()

        held = weights(jax)
        both = [small(jax, tokens, held)[1] for tokens in batches]
        true = np.sqrt(
            sum(np.sum((one / 2 + other / 2) ** 2) for one, other in zip(*map(jax.tree.leaves, both), strict=True))
        )
        rec = Recorder("cpu-jax", out=tmp_path / "run.json", quiet=True)
        seen = rec.jit(step)
        for _ in range(2):
            seen(held, batches)
        rec.finish()
        norm = json.loads((tmp_path / "run.json").read_text())["measurement"]["gradient_norm"]
        assert norm["last"] == pytest.approx(float(true), rel=1e-4)

    def test_a_call_that_may_train_nothing_states_no_tokens(self, jax: Any) -> None:
        def some(held: Any, tokens: Any, at: Any) -> Any:
            none = jax.tree.map(jax.numpy.zeros_like, held)
            grads = jax.lax.cond(at % 2 == 0, lambda: small(jax, tokens, held)[1], lambda: none)
            return jax.tree.map(lambda old, new: old - new, held, grads)

        def clipped(held: Any, tokens: Any, at: Any) -> Any:
            loss, grads = small(jax, tokens, held)
            return jax.lax.cond(loss < at, lambda: jax.tree.map(lambda old, new: old - new, held, grads), lambda: held)

        tokens = jax.numpy.zeros((ROWS, LENGTH), int)
        sometimes, always = (
            jax_program.StepProgram(jax.make_jaxpr(step)(weights(jax), tokens, 1)) for step in (some, clipped)
        )
        assert (jax_facts.tokens(sometimes), jax_facts.tokens(always)) == (None, ROWS * LENGTH)

    def test_rows_that_are_looked_up_and_left_out_are_no_tokens(self, jax: Any) -> None:
        def step(held: Any, tokens: Any, rows: int) -> Any:
            return jax.grad(lambda held: ((held["wte"][tokens][:rows] @ held["head"]) ** 2).mean())(held)

        tokens = jax.numpy.zeros((ROWS, LENGTH), int)
        part, whole = (
            jax_program.StepProgram(jax.make_jaxpr(partial(step, rows=rows))(weights(jax), tokens))
            for rows in (1, ROWS)
        )
        assert (jax_facts.tokens(part), jax_facts.tokens(whole)) == (None, ROWS * LENGTH)

    def test_a_scaled_loss_has_no_parameter_more_and_the_norm_of_what_updates(self, jax: Any) -> None:
        def step(held: Any, scale: Any, tokens: Any) -> Any:
            grads = jax.grad(lambda held: scale * ((held["wte"][tokens] @ held["head"]) ** 2).mean())(held)
            return jax.tree.map(lambda old, new: old - new / scale, held, grads), scale

        held = {name: weights(jax)[name] for name in ("wte", "head")}
        tokens = jax.numpy.zeros((ROWS, LENGTH), int)
        values = []
        for scale in (1.0, 1024.0):
            closed = jax.make_jaxpr(step)(held, jax.numpy.float32(scale), tokens)
            program = jax_program.StepProgram(closed)
            assert jax_facts.facts(program)["model.parameters_total"] == 2 * VOCABULARY * WIDTH
            compute = program.norm(closed, jax_facts.parameter_arguments(program), loops=False)
            assert compute is not None
            values.append(float(compute(*jax.tree.leaves((held, jax.numpy.float32(scale), tokens)))))
        assert values[0] == pytest.approx(values[1])

    def test_what_a_static_argument_decides_is_stated_and_a_loss_of_before_is_none(
        self, jax: Any, tmp_path: Path
    ) -> None:
        def step(held: Any, last: Any, tokens: Any, whole: bool) -> Any:
            loss, grads = small(jax, tokens, held if whole else {key: held[key].astype("bfloat16") for key in held})
            return held | {"wte": held["wte"] - grads["wte"]}, {"loss": last, "now": loss}

        rec = Recorder("cpu-jax", out=tmp_path / "run.json", quiet=True, warmup=1)
        seen = rec.jit(step, static_argnums=3)
        held, loss = weights(jax), jax.numpy.float32(1.0)
        for at in range(4):
            held, metrics = seen(held, loss, jax.numpy.zeros((ROWS, LENGTH), int), at < 1)
            loss = metrics["now"]
        rec.finish()
        receipt = json.loads((tmp_path / "run.json").read_text())
        assert receipt["numerics"]["compute_dtype"] == "bf16"
        assert "loss" not in receipt["measurement"]

    @pytest.mark.parametrize("checked", [True, False])
    def test_a_norm_within_a_split_step_is_that_of_the_mean(self, jax: Any, checked: bool) -> None:
        def step(held: Any, tokens: Any) -> Any:
            loss, grads = small(jax, tokens, held)
            if not checked:
                grads = jax.lax.psum(grads, "data")
            every = jax.tree.map(lambda leaf: leaf / mesh.size, grads)
            return jax.tree.map(lambda old, new: old - new, held, every), jax.lax.pmean(loss, "data")

        devices = jax.devices()
        mesh, spec = jax.sharding.Mesh(devices, ("data",)), jax.sharding.PartitionSpec
        split = jax.shard_map(
            step, mesh=mesh, in_specs=(spec(), spec("data")), out_specs=(spec(), spec()), check_vma=checked
        )
        held = weights(jax)
        tokens = jax.numpy.arange(mesh.size * ROWS * LENGTH).reshape(-1, LENGTH) % VOCABULARY
        closed = jax.make_jaxpr(jax.jit(split))(held, tokens)
        program = jax_program.StepProgram(closed)
        compute = program.norm(closed, jax_facts.parameter_arguments(program), loops=False)
        assert compute is not None
        value = jax.jit(compute)(*jax.tree.leaves((held, tokens)))
        assert float(value) == pytest.approx(norm_of(jax, small(jax, tokens, held)[1]), rel=1e-4)

    def test_gradients_alone_make_steps_where_others_update_the_weights(self, jax: Any, tmp_path: Path) -> None:
        rec = Recorder("cpu-jax", out=tmp_path / "run.json", quiet=True)
        watch = JitWatch(jax, rec.start)
        gradients = jax.jit(lambda held, tokens: small(jax, tokens, held))
        held, tokens = weights(jax), jax.numpy.zeros((ROWS, LENGTH), int)
        for _ in range(5):
            before = held
            for _ in range(2):
                loss, grads = gradients(held, tokens)
            held = jax.tree.map(lambda old, new: old - 0.0 * new, held, grads)
        rec.finish()
        watch.close()
        receipt = json.loads((tmp_path / "run.json").read_text())
        assert len(receipt["measurement"]["step_durations_seconds"]) == 5
        assert receipt["measurement"]["tokens_per_step"] == 2 * ROWS * LENGTH
        assert receipt["batch"]["accumulation"] == 2
        assert receipt["measurement"]["loss"]["last"] == pytest.approx(float(loss))
        assert receipt["measurement"]["gradient_norm"]["last"] == pytest.approx(
            norm_of(jax, small(jax, tokens, before)[1])
        )

    def test_what_is_compiled_ahead_of_time_is_recorded_without_a_line(self, jax: Any, tmp_path: Path) -> None:
        rec = Recorder("cpu-jax", out=tmp_path / "run.json", quiet=True)
        watch = JitWatch(jax, rec.start)

        def step(held: Any, tokens: Any) -> Any:
            loss, grads = small(jax, tokens, held)
            return jax.tree.map(lambda old, new: old - 1e-3 * new, held, grads), loss

        held, tokens = weights(jax), jax.numpy.zeros((ROWS, LENGTH), int)
        compiled = jax.jit(step).lower(held, jax.ShapeDtypeStruct(tokens.shape, tokens.dtype)).compile()
        assert compiled.memory_analysis().temp_size_in_bytes > 0
        for _ in range(4):
            held, loss = compiled(held, tokens)
        rec.finish()
        watch.close()
        receipt = json.loads((tmp_path / "run.json").read_text())
        assert (len(receipt["measurement"]["step_durations_seconds"]), receipt["model"]["vocabulary"]) == (
            4,
            VOCABULARY,
        )
        assert receipt["measurement"]["loss"]["last"] == pytest.approx(float(loss))
        assert receipt["measurement"]["gradient_norm"]["last"] > 0

    def test_a_product_of_two_thin_weights_is_an_adapter(self, jax: Any) -> None:
        tokens = jax.numpy.zeros((ROWS, LENGTH), int)
        program = jax_program.StepProgram(jax.make_jaxpr(lambda held: small(jax, tokens, held))(weights(jax)))
        assert jax_facts.adapter_ranks(program) == {2}

    def test_a_product_of_narrow_data_and_a_weight_is_none(self, jax: Any) -> None:
        def train(weights: Any, seen: Any) -> Any:
            loss, grads = jax.value_and_grad(lambda held: (jax.numpy.tanh(seen @ held["up"]) @ held["out"]).sum())(
                weights
            )
            return jax.tree.map(lambda old, new: old - new, weights, grads), loss

        ones = jax.numpy.ones
        program = jax_program.StepProgram(
            jax.make_jaxpr(train)({"up": ones((4, 32)), "out": ones((32, 2))}, ones((64, 4)))
        )
        assert program.products[0].merged is not None
        assert jax_facts.adapter_ranks(program) == set()

    def test_a_jitted_method_is_recorded_without_a_line(self, jax: Any, tmp_path: Path) -> None:
        before, rec = jax.jit, Recorder("cpu-jax", out=tmp_path / "run.json", quiet=True)
        watch = JitWatch(jax, rec.start)

        class Trainer:
            @partial(jax.jit, static_argnums=0)
            def step(self, held: Any, tokens: Any) -> Any:
                loss, grads = small(jax, tokens, held)
                return jax.tree.map(lambda old, new: old - new, held, grads), loss

        gradients, trainer = jax.jit(lambda held, tokens: small(jax, tokens, held)), Trainer()
        held, tokens = weights(jax), jax.numpy.zeros((ROWS, LENGTH), int)
        for _ in range(2):
            gradients(held, tokens)  # gives nothing that it takes
        for _ in range(4):
            held, _ = trainer.step(held, tokens)
        rec.finish()
        watch.close()
        assert jax.jit is before
        receipt = json.loads((tmp_path / "run.json").read_text())
        assert len(receipt["measurement"]["step_durations_seconds"]) == 4
        assert receipt["model"]["vocabulary"] == VOCABULARY
