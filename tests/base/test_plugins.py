"""Packages that other distributions name."""

from __future__ import annotations

from pathlib import Path

import pytest

from receipts.base.plugins import named_elsewhere


def test_a_distribution_beside_names_its_packages_in_a_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("two", "b_two"), ("one", "a_one"), ("other", None)):
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
        group = "receipts.plugins" if text else "console_scripts"
        (folder / "entry_points.txt").write_text(f"[{group}]\n{name} = {text or 'c:main'}\n", encoding="utf-8")
    assert named_elsewhere("receipts.plugins") == []
    monkeypatch.syspath_prepend(str(tmp_path))
    assert named_elsewhere("receipts.plugins") == ["a_one", "b_two"]
    assert named_elsewhere("receipts.readers") == []
