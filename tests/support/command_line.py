"""What the tests of the command line share: receipts as files, a store of their own, and the program in-process."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import rule_cases
from receipts.cli import main
from store_copies import FileCopies, no_receipts

HOSTILE = "evil\x1b[31m\u202e\x07\x9b2J"


@dataclass(frozen=True)
class Said:
    """What a call answered."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The answer's lines."""
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        """The answer as data."""
        return json.loads(self.out)


@dataclass
class Shell:
    """A folder with a store, in which the program is called."""

    folder: Path
    call: Callable[..., Said]
    made: dict[str, str] = field(default_factory=dict)

    def __call__(self, *words: str) -> Said:
        return self.call(*words)

    def write(self, name: str, base: str = "cpu", **leaves: Any) -> str:
        """A receipt file of that name; ``__`` stands for a dot. Its launch and label are the name."""
        tree = rule_cases.base(base)
        # No two launches start on a host at one instant (R112); of one second, the later one is made later.
        moment = list(self.made).index(name) if name in self.made else len(self.made)
        started = tree["run"]["started"].replace("+", f".{moment + 1:06d}+")
        own = {"run.launch": f"launch-{name}", "run.label": name, "run.started": started}
        for leaf, value in {**own, **leaves}.items():
            rule_cases.put(tree, leaf.replace("__", "."), value)
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(tree), encoding="utf-8")
        self.made[name] = sha256(path.read_bytes()).hexdigest()
        return str(path)

    def store(self, name: str, base: str = "cpu", **leaves: Any) -> str:
        """A stored receipt of that name; its id."""
        said = self("submit", self.write(name, base, **leaves))
        assert said.code == 0, said.err
        return self.made[name]

    def unmade(self) -> None:
        """Take the store away: the first command that needs one makes it."""
        (self.folder / "store.sqlite").unlink()

    def filled(self, kept: Path, fill: Callable[[Shell], object]) -> Shell:
        """Fill the store, or copy it from the folder ``kept``, where the first test that asks for it leaves it."""
        if not (kept / "store.sqlite").exists():
            fill(self)
            shutil.copyfile(self.folder / "store.sqlite", kept / "store.sqlite")
            (kept / "made.json").write_text(json.dumps(self.made), encoding="utf-8")
        shutil.copyfile(kept / "store.sqlite", self.folder / "store.sqlite")
        self.made = json.loads((kept / "made.json").read_text(encoding="utf-8"))
        return self


@pytest.fixture
def shell(
    tmp_path: Path, file_copies: FileCopies, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    """The program with an empty store, called in-process."""
    file_copies.file(tmp_path / "store.sqlite", "no receipts", no_receipts)
    monkeypatch.setenv("RECEIPTS_STORE", str(tmp_path / "store.sqlite"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()

    def call(*words: str) -> Said:
        code = main(list(words))
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return Shell(tmp_path, call)
