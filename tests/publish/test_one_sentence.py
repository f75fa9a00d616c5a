"""A sentence of a verdict is in one file: whoever edits it there reads it on every surface."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import report_store as week
from receipts.base.environment import bundled_folder
from receipts.cli import main
from receipts.publish import text as text_module

SENTENCES = {
    "several_axes": "{count} SETTINGS AT ONCE, SPLIT THEM: {moved}",
    "offense": "{name}{sides} SPOILS IT: {found}",
}


@pytest.fixture
def edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The folder of reports with both sentences edited in the one file that has them."""
    folder = tmp_path / "reports"
    shutil.copytree(bundled_folder("reports"), folder)
    file = folder / "words" / "compare.toml"
    text = file.read_text(encoding="utf-8")
    for name, sentence in SENTENCES.items():
        text, count = re.subn(rf'(?m)^{name} = ".*"$', f'{name} = "{sentence}"', text)
        assert count == 1
    file.write_text(text, encoding="utf-8")
    monkeypatch.setattr(text_module, "bundled_folder", lambda _: folder)
    for at in (1, 2):  # read again now, and again as it ships when the test is over
        vars(text_module.words("compare")).pop("_texts", None)
        vars(text_module.words("compare")).pop("_place", None)
        if at == 1:
            yield
            monkeypatch.undo()


@pytest.mark.usefixtures("edited")
def test_an_edited_sentence_is_read_on_every_surface(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, out = tmp_path / "store.sqlite", tmp_path / "out"
    every = week.everything()
    week.fill(store, every).close()
    base, far = every[0].id, every[6].id
    (left,) = (item.id for item in every if item.receipt.run.label == "left its path")

    def call(*words: str) -> str:
        main(["--store", str(store), *words])
        return capsys.readouterr().out

    def pages(name: str, *words: str) -> dict[str, str]:
        call("report", *words, "--out", str(out / name))
        return {f"{name} {file}": (out / name / file).read_text() for file in ("report.md", "index.html")}

    reported = pages("weekly", "weekly", "--week", week.WEEK, "--as-of", week.AS_OF)
    for b, sentence in ((far, "SETTINGS AT ONCE, SPLIT THEM"), (left, " on B SPOILS IT: ")):
        printed = {form: call("compare", base, b, "--format", form) for form in ("text", "markdown", "html")}
        surfaces = {**reported, **printed, **pages(b[:8], "compare", base, b)}
        read = {name: re.sub(r"<[^>]+>|\s+", " ", text).replace("  ", " ") for name, text in surfaces.items()}
        assert [name for name, text in read.items() if sentence not in text] == []
