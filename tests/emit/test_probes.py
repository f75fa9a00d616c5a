"""All probes together: what they must never do, whatever is imported."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from types import ModuleType

import pytest

from jobs import job, read
from probe_stage import Stage, StandIn, stand_in
from receipts.emit import probes

__all__ = ["stand_in"]
MODULES = [importlib.import_module(f"receipts.emit.probes.{name}") for name in probes.NAMES]
FRAMEWORKS = ("torch", "jax", "jaxlib", "torch_xla", "transformer_engine", "megatron", "pynvml", "numpy", "tensorflow")
RUN = """
with Recorder("cpu-torch", context="c", warmup=2, out="run.json", quiet=True) as rec:
    with rec.span("compile"):
        pass
    for _ in range(4):
        with rec.step(tokens=8):
            pass
print(sorted(set(sys.modules) & set({names!r})))
"""


def test_every_module_that_is_a_probe_is_run() -> None:
    folder = Path(probes.__file__).parent
    helpers = {"__init__", "imported"}
    assert {path.stem for path in folder.glob("*.py")} - helpers == set(probes.NAMES)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.NAME))
def test_a_probe_keeps_the_contract(module: ModuleType) -> None:
    calls = {"at_start": 1, "at_phase": 2, "at_warm": 1, "at_end": 1}
    own = {name: getattr(module, name) for name in calls if hasattr(module, name)}
    assert own
    for name, function in own.items():
        assert len(inspect.signature(function).parameters) == calls[name]


def test_probes_import_no_framework(tmp_path: Path) -> None:
    done = job(tmp_path, RUN.replace("{names!r}", repr(FRAMEWORKS)))
    assert done.stdout.strip() == "[]", done.stderr
    found = read(tmp_path / "run.json")
    assert "recorder" not in found["notes"] or "Error" not in str(found["notes"]["recorder"])
    assert found["wheels"]["complete"] is True
    assert found["flags"]["complete"] is True


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.NAME))
def test_half_imported_and_broken_modules_are_notes_at_most(module: ModuleType, stand_in: StandIn) -> None:
    """Every framework is there, with nothing in it, or with what raises."""

    def fail(*_given: object, **_named: object) -> None:
        raise RuntimeError("broken")

    names = (
        *("torch", "torch.version", "torch.cuda", "torch.backends.cuda", "torch.backends.cudnn", "torch._dynamo.utils"),
        *("torch.distributed", "jax", "jax._src.monitoring", "jax._src.xla_bridge", "jax._src.config", "_XLAC"),
        *("torch_xla", "torch_xla.debug.metrics", "transformer_engine", "pynvml", "megatron.training.global_vars"),
        *("torch._dynamo.callback", "jax._src.mesh", "torch_xla.runtime"),
    )
    attributes = (
        *("memory_stats", "device_count", "get_device_properties", "version", "is_initialized", "devices"),
        *("local_devices", "counter_names", "register_event_listener", "nvmlInit", "math_sdp_enabled", "is_spmd"),
        *("_xla_runtime_is_initialized", "get_default_dtype", "current_device", "_xla_get_all_runtime_devices"),
    )
    for full in (False, True):
        for name in names:
            broken = {"_initialized": True, "_backends": {"cpu": 1}, "counters": {}, "callback_handler": object()}
            stand_in(name, **(dict.fromkeys(attributes, fail) | broken if full else {}))
        stage = Stage(module.NAME, warmup=1)
        for call, given in (("at_start", ()), ("at_phase", ("post_init",)), ("at_phase", ("post_step0",))):
            if hasattr(module, call):
                getattr(module, call)(stage.stated, *given)
        for call, given in (("at_warm", ()), ("at_phase", ("steady",)), ("at_end", ())):
            if hasattr(module, call):
                getattr(module, call)(stage.ended(3).stated, *given)


def test_the_end_of_the_warm_up_is_seen_once_and_at_its_place(tmp_path: Path) -> None:
    from receipts.emit import Recorder

    seen: list[tuple[str, int]] = []
    probe = ModuleType("watcher")
    vars(probe).update(NAME="watcher", at_warm=lambda stated: seen.append(("warm", stated.steps)))
    for warmup in (1, 3):
        with Recorder(
            "cpu-torch", warmup=warmup, out=tmp_path / "run.json", journal=False, probes=[probe], quiet=True
        ) as rec:
            for _ in range(6):
                with rec.step(tokens=1):
                    pass
    assert seen == [("warm", 1), ("warm", 3)]
