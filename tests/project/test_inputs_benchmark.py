"""The benchmark of inputs, in small: launches of three programs in miniature, told apart by what they were told."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def benchmark(checkout: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("inputs_benchmark", checkout / "benchmarks" / "inputs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["inputs_benchmark"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", ["argparse", "YAML with overrides", "Python configuration"])
def test_no_pair_with_two_changes_passes_and_one_change_is_decided(
    kind: str, benchmark: ModuleType, tmp_path: Path
) -> None:
    launched = benchmark.launches(kind, 9, tmp_path, 1)
    for context in (None, "preset"):
        tallies = benchmark.tallied(launched, 40, context, 1)
        assert tallies[1].pairs > 4 < tallies[2].pairs
        for changed, tally in tallies.items():
            wanted = "yes" if changed < 2 else "no"
            assert tally.said[wanted] == tally.pairs
            assert changed == 0 or tally.one_configuration == 0
