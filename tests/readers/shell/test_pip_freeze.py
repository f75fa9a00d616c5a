"""Lists of installed distributions, and files that merely hold such lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from receipts.ingest.evidence import read
from receipts.ingest.reading import Reading

FROZEN = "absl-py==2.3.1\njax==0.10.2\njaxlib==0.10.2\nlibtpu==0.0.42\nnumpy==2.3.4\n"


def readings(tmp_path: Path, text: str) -> tuple[Reading, ...]:
    path = tmp_path / "freeze.txt"
    path.write_text(text, encoding="utf-8")
    return read(path).readings


def wheels(tmp_path: Path, text: str) -> dict[str, str]:
    (found,) = readings(tmp_path, text)
    return {path: item.value for path, item in found.stated.items()}


def test_every_version_is_stated_with_its_line(tmp_path: Path) -> None:
    (found,) = readings(tmp_path, FROZEN)
    assert (found.source, found.records) == ("pip-freeze", 5)
    said = found.stated["wheels.libtpu"]
    assert (said.value, said.place.line) == ("0.0.42", 4)


def test_a_wheel_by_its_address_names_its_version(tmp_path: Path) -> None:
    text = FROZEN + "torch_xla @ file:///wheels/torch_xla-2.9.0+gitc04e61c-cp311-cp311-linux_x86_64.whl\n"
    assert wheels(tmp_path, text)["wheels.torch_xla"] == "2.9.0+gitc04e61c"


def test_a_checkout_names_no_version_and_is_told(tmp_path: Path) -> None:
    (found,) = readings(tmp_path, FROZEN + "-e git+https://example.org/x@3f9c#egg=mine\n")
    assert found.records == 5
    assert found.remarks[0].text.startswith("1 lines name no version")


def test_columns_of_pip_list_are_read(tmp_path: Path) -> None:
    text = "Package    Version\n---------- -------\ntorch      2.12.0\njax        0.10.2\n"
    assert wheels(tmp_path, text) == {"wheels.torch": "2.12.0", "wheels.jax": "0.10.2"}


@pytest.mark.parametrize(
    "text",
    [
        "torch==2.9.0\njax==0.10.2\n",
        "\n".join(f"step {step}: loss 2.5" for step in range(40)) + "\n" + FROZEN,
        "a @ b\n" * 9,
    ],
)
def test_a_few_pins_and_logs_with_pins_are_no_list(tmp_path: Path, text: str) -> None:
    assert all(item.source != "pip-freeze" for item in readings(tmp_path, text))
