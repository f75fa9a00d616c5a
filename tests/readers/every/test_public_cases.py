"""Public input that the product read wrongly once: each case with what a careful person writes down of it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

PUBLIC = Path(__file__).resolve().parents[4] / "shared" / "cases" / "public"


@pytest.fixture
def agreement(checkout: Path) -> ModuleType:
    """The benchmark, as a module."""
    spec = importlib.util.spec_from_file_location("public_agreement", checkout / "benchmarks" / "public_agreement.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.skipif(not PUBLIC.is_dir(), reason="the public cases are not beside this checkout")
def test_every_public_case_reads_as_a_careful_person_reads_it(agreement: ModuleType) -> None:
    items = agreement.run(PUBLIC)
    assert len(items) > 70
    assert [item for item in items if not item.right] == []


def test_a_wrong_value_is_not_near(agreement: ModuleType) -> None:
    assert agreement.near(20.0, 20.001)
    assert not agreement.near(20.0, 21.0)
    assert not agreement.near([1, 2], [1])
    assert not agreement.near("ok", None)
