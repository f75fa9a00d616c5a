"""Recipes: files of settings as they were asked for; a log, a tracker's file and a list of names are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from receipts.ingest.assembly import assemble
from receipts.ingest.evidence import read

RECIPE = """# a lane's recipe
model:
  num_layers: 52
  hidden_size: 4096
parallelism: {tensor_model_parallel_size: 1, expert_model_parallel_size: 8}
training:
  micro_batch_size: 8
  global_batch_size: 64  # eight a chip
"""
TOML = """[training]
seq_len = 4096
local_batch_size = 1
[parallelism]
tensor_parallel_degree = 8
"""
LOG = "".join(f"iteration: {step}\nmicro_batch_size: 8\nglobal_batch_size: 64\nseq_length: 4096\n" for step in range(4))


def sources(folder: Path, text: str) -> list[str]:
    (folder / "file").write_text(text, encoding="utf-8")
    return [item.source for item in read(folder / "file").readings]


def resolved(folder: Path, **files: str) -> object:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    draft = assemble([read(folder / name) for name in files])
    return draft.tree.get("inputs", {}).get("resolved")


@pytest.mark.parametrize("text", [RECIPE, TOML])
def test_a_file_of_settings_that_frameworks_know_is_a_recipe(tmp_path: Path, text: str) -> None:
    assert sources(tmp_path, text) == ["recipe"]


@pytest.mark.parametrize(
    "text",
    [
        LOG,
        RECIPE + "_wandb:\n  value: {}\n",
        "name: trainer\nimage: registry/train:1\ncommand: [python, train.py]\nseq_length: 4096\n",
        "model: hybrid\nlr: 3e-4\n",
    ],
    ids=["a log that repeats its keys", "a tracker's file", "a pod", "too few known names"],
)
def test_other_files_of_names_and_values_are_none(tmp_path: Path, text: str) -> None:
    assert "recipe" not in sources(tmp_path, text)


def test_its_settings_are_what_the_launch_was_asked(tmp_path: Path) -> None:
    settings = resolved(tmp_path, recipe=RECIPE)
    assert isinstance(settings, dict)
    assert settings["training.micro_batch_size"] == "8"
    assert settings["parallelism.expert_model_parallel_size"] == "8"


def test_two_recipes_that_differ_state_none(tmp_path: Path) -> None:
    assert resolved(tmp_path, one=RECIPE, two=RECIPE.replace("64", "32")) is None
    assert resolved(tmp_path, one=RECIPE, two=RECIPE) is not None


def test_a_broken_recipe_says_where(tmp_path: Path) -> None:
    (tmp_path / "file").write_text(RECIPE + "more: [1, 2\n", encoding="utf-8")
    (reading,) = read(tmp_path / "file").readings
    assert any("no recipe that can be read" in remark.text and "line" in remark.text for remark in reading.remarks)
