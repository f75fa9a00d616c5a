"""The container file and the unit: they name commands that exist, and copy what a wheel is built from."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import click
import pytest

from command_line import Shell
from receipts.cli.group import group
from receipts.plugins.serve.run import serve_command as serve

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "examples" / "serve"


@pytest.fixture
def texts() -> str:
    """Both files; their comments hold commands, too."""
    if not FOLDER.is_dir():
        pytest.skip("needs the checkout: this run tests the installed wheel")
    joined = "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in ("Containerfile", "receipts.service"))
    return re.sub(r"\\\n#?\s*", "", joined)


def test_every_command_of_the_files_exists_with_its_options(texts: str, shell: Shell) -> None:
    served = [shlex.split(words) for words in re.findall(r"\bserve (--listen .*)", texts)]
    assert len(served) == 2
    for words in served:
        # A command keeps the help option that it was first asked for: that of the group that it belongs to.
        with serve.make_context("serve", words, resilient_parsing=True, **group.context_settings) as context:
            assert isinstance(context, click.Context)
            assert context.params["hosts"] == ("receipts.example.org",)
    given = re.findall(r"\b(token add .*)", texts)
    assert len(given) == 2
    for words in given:
        assert shell(*shlex.split(words)).code == 0
        assert shell("token", "revoke", "ana").code == 0


def test_the_image_is_built_from_all_that_a_wheel_needs(texts: str) -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    kept = {line[1:] for line in ignored if line.startswith("!")}
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {"pyproject.toml", "LICENSE", project["project"]["readme"], *wheel["packages"], *wheel["force-include"]}
    assert kept == needed
    assert "*" in ignored
    assert all((ROOT / name).exists() for name in kept)
    assert "'.[serve]'" in texts
    assert "serve" in project["project"]["optional-dependencies"]


def test_the_unit_keeps_its_store_where_it_may_write(texts: str) -> None:
    state = re.search(r"^StateDirectory=(\w+)$", texts, re.MULTILINE)
    assert state is not None
    stores = re.findall(r"--store (\S+)", texts)
    assert stores
    assert all(store.startswith(f"/var/lib/{state[1]}/") for store in stores)
