"""An experiment that comes from outside is refused, whatever is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from receipts.base.errors import InputError
from receipts.plugins.study.experiment import FILE, read_experiment


def test_an_experiment_that_nests_too_deep_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("[" * 100_000)
    with pytest.raises(InputError, match="nests too deep"):
        read_experiment(tmp_path)
