"""Whatever a job passes to the recorder, nothing raises into it, and the receipt is written at the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from receipts.emit import Recorder

pytestmark = pytest.mark.slow


class Hostile:
    """An object each of whose methods raises."""

    def _raise(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("hostile")

    __getattr__ = __str__ = __repr__ = __eq__ = __bool__ = __float__ = __int__ = __index__ = _raise  # type: ignore[assignment]
    __iter__ = __len__ = __call__ = __fspath__ = __lt__ = __hash__ = _raise  # type: ignore[assignment]


_OBJECTS: Final[list[Any]] = [
    *(None, ["eval"], {"a": 1}, np.array([512, 512]), np.float32(1.5), float("nan"), -1, 10**30, "x" * 100_000),
    *("\x00\ud800", b"ab", object(), Hostile(), lambda: 1 / 0, (1, 2), True, 1 + 2j, Exception),
]
ODD: Final[dict[str, Any]] = {f"{type(item).__name__} {at}": item for at, item in enumerate(_OBJECTS)}


def _calls(recorder: Recorder, odd: Any) -> list[Callable[[], object]]:
    names = ("flag", "step_begin", "step_end", "abandon_step", "window", "state", "note", "loss", "gradient_norm")
    return [
        lambda: recorder.step(tokens=odd).__enter__().__exit__(None, None, None),
        lambda: recorder.step(flag=odd).__enter__().__exit__(None, None, None),
        lambda: recorder.span(odd).__enter__().__exit__(None, None, None),
        *(
            lambda name=name: getattr(recorder, name)(odd)
            for name in (*names, "memory", "failure", "attach", "profile")
        ),
        *(lambda name=name: getattr(recorder, name)(odd, odd) for name in ("window", "state", "note", "failure")),
        lambda: recorder.counter(odd, odd),
        lambda: recorder.path(attention=odd),
        lambda: recorder.observe(kind=odd, uri=odd, observed=odd, attention=odd),
        lambda: recorder.memory("steady", chip=odd, peak_bytes=odd),
        lambda: recorder.state("model.depth", odd),
        lambda: recorder.stated_by(odd),
        recorder.missing,
    ]


@pytest.fixture
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("odd", ODD)
def test_no_call_raises_and_the_receipt_is_written(odd: str, tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    with Recorder(lane="cpu-torch", out=out, quiet=True, probes=False) as recorder:
        for call in _calls(recorder, ODD[odd]):
            call()
    assert json.loads(out.read_bytes())["run"]["lane"] == "cpu-torch"
    assert recorder.written == str(out)


@pytest.mark.parametrize("name", ["lane", "out", "kind", "tags", "warmup", "launch", "journal", "probes", "quiet"])
def test_no_argument_keeps_a_recorder_from_being_made(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for odd in ODD.values():
        named: dict[str, Any] = {"lane": "cpu-torch", "probes": False, "quiet": True, name: odd}
        with Recorder(**named) as recorder, recorder.step():
            pass


def test_what_is_misspelled_is_a_note_and_not_the_job_s_death(tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    with Recorder("cpu-torch", out=out, quiet=True, probes=False, contxt="decoder") as recorder:
        recorder.path(attention="sdpa_mth", gemm="my_gemm3")
        recorder.state("numerics.compute_dtype", "bfloat61")
    notes = json.loads(out.read_bytes())["notes"]["recorder"]
    assert "contxt: the recorder takes no such argument and leaves it out; did you mean context?" in notes
    assert "path.intended.attention: rules know no 'sdpa_mth'; did you mean sdpa_math? It stands" in notes
    assert any(note.startswith("numerics.compute_dtype: rules know no 'bfloat61'") for note in notes)
    assert not any("my_gemm3" in note for note in notes)


def test_the_value_of_a_secret_variable_is_blanked_wherever_it_occurs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGISTRY_PASSWORD", "open sesame 42")
    out = tmp_path / "run.json"
    with Recorder(lane="cpu-torch", out=out, quiet=True, probes=False) as recorder:
        recorder.note("logged in with open sesame 42")
        recorder.failure("login failed: 'open sesame 42' was refused")
    text = out.read_text(encoding="utf-8")
    assert "sesame" not in text
    assert "login failed" in text
