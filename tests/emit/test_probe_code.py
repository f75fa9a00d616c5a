"""The project's own code: commit, and one digest of what was really imported."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobs import job, read
from receipts.emit.probes import code, imported

pytestmark = pytest.mark.slow

RUN = """
import helper
with Recorder("cpu-torch", context="c", out="run.json", quiet=True) as rec:
    with rec.step(tokens=8):
        {inside}
"""


def git(folder: Path, *words: str) -> None:
    names = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b.c", "GIT_COMMITTER_NAME": "a"}
    env = {**os.environ, **names, "GIT_COMMITTER_EMAIL": "a@b.c", "GIT_CONFIG_GLOBAL": "/dev/null"}
    if shutil.which("git") is None:
        pytest.skip("needs git")
    subprocess.run(["git", *words], cwd=folder, env=env, check=True, capture_output=True)


def project(folder: Path, helper: str = "VALUE = 1\n") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "helper.py").write_text(helper, encoding="utf-8")
    return folder


def run(folder: Path, inside: str = "pass", **variables: str) -> dict[str, Any]:
    (folder / "run.json").unlink(missing_ok=True)
    done = job(folder, RUN.format(inside=inside), variables)
    assert done.returncode == 0, done.stderr
    return read(folder / "run.json")


def test_the_digest_is_that_of_the_imported_files_and_not_of_their_folder(tmp_path: Path) -> None:
    one, two = run(project(tmp_path / "one")), run(project(tmp_path / "two"))
    other = run(project(tmp_path / "other", "VALUE = 2\n"))
    assert one["code"]["imported_digest"] == two["code"]["imported_digest"]
    assert other["code"]["imported_digest"] != one["code"]["imported_digest"]


def test_a_run_that_the_end_of_the_process_ends_has_the_same_digest(tmp_path: Path) -> None:
    start = 'import helper\nrec = Recorder("cpu-torch", out="run.json", quiet=True).start()\nwith rec.step(): pass\n'
    folder = project(tmp_path / "one")
    ended = []
    for finished in ("1", ""):
        (folder / "run.json").unlink(missing_ok=True)
        job(folder, start + "rec.finish() if os.environ['END'] else None\n", {"END": finished})
        ended.append(read(folder / "run.json")["code"])
    assert ended[0] == ended[1]


def test_a_module_that_is_there_and_not_imported_changes_nothing(tmp_path: Path) -> None:
    one = run(project(tmp_path / "one"))
    (project(tmp_path / "two") / "unused.py").write_text("VALUE = 3\n", encoding="utf-8")
    assert run(tmp_path / "two")["code"] == one["code"]


def test_a_script_that_is_edited_while_it_runs_keeps_the_digest_of_what_was_imported(tmp_path: Path) -> None:
    inside = "open('helper.py', 'a').write('# later') if os.environ.get('EDIT') else None"
    plain = run(project(tmp_path / "one"), inside)
    edited = run(project(tmp_path / "two"), inside, EDIT="1")
    assert (tmp_path / "two" / "helper.py").read_text(encoding="utf-8").endswith("# later")
    assert edited["code"] == plain["code"]


def test_a_file_that_came_while_it_ran_leaves_the_digest_unknown(tmp_path: Path) -> None:
    found = run(project(tmp_path / "one"), "open('late.py', 'w').write('X = 1'); import late")
    assert "imported_digest" not in found["code" if "code" in found else "run"]
    assert "late changed, or went" in "\n".join(found["notes"]["code"])


def test_the_commit_stands_with_its_repository_and_no_token(tmp_path: Path) -> None:
    folder = project(tmp_path / "one")
    run(folder)
    git(folder, "init", "-q")
    git(folder, "add", "helper.py", "job.py")
    git(folder, "commit", "-q", "-m", "first")
    git(folder, "remote", "add", "origin", "https://me:ghp_0123456789abcdefghijABCDEFGHIJ012345@host.example/a/b.git")
    found = run(folder)["code"]
    assert len(found["commit"]) == 40
    assert found["dirty"] is False
    assert found["repository"] == "https://host.example/a/b.git"
    assert "ghp_" not in (folder / "run.json").read_text(encoding="utf-8")
    (folder / "helper.py").write_text("VALUE = 5\n", encoding="utf-8")
    assert run(folder)["code"]["dirty"] is True


def test_a_script_that_git_does_not_know_is_dirty(tmp_path: Path) -> None:
    folder = project(tmp_path / "one")
    git(folder, "init", "-q")
    git(folder, "add", "helper.py")
    git(folder, "commit", "-q", "-m", "first")
    found = run(folder)
    assert found["code"]["dirty"] is True
    assert "git does not track it" in "\n".join(found["notes"]["code"])


def test_packages_of_another_checkout_are_told_with_its_commit(tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "borrowed").mkdir(parents=True)
    (other / "borrowed" / "__init__.py").write_text("", encoding="utf-8")
    git(other, "init", "-q")
    git(other, "add", ".")
    git(other, "commit", "-q", "-m", "first")
    place = f"sys.path.insert(0, {str(other)!r}); import borrowed"
    found = run(project(tmp_path / "one"), place)
    assert "borrowed: imported from another checkout, commit" in "\n".join(found["notes"]["code"])


def test_a_program_that_is_no_file_has_no_digest(tmp_path: Path) -> None:
    body = "from receipts.emit import Recorder\nwith Recorder('cpu-torch', out='run.json', quiet=True): pass\n"
    root = str(Path(imported.__file__).parents[3])
    env = {**os.environ, "PYTHONPATH": root}
    subprocess.run([sys.executable, "-c", body], cwd=tmp_path, env=env, check=True)
    assert "code" not in read(tmp_path / "run.json")


@pytest.mark.parametrize(
    ("address", "clean"),
    [
        ("https://me:secret@host/x.git", "https://host/x.git"),
        ("https://ghp_abc@host:8443/x.git", "https://host:8443/x.git"),
        ("git@host:a/b.git", "git@host:a/b.git"),
        ("ssh://git@host/a/b.git", "ssh://host/a/b.git"),
    ],
)
def test_a_remote_loses_the_user_in_its_address(address: str, clean: str) -> None:
    assert code.without_user(address) == clean


@pytest.mark.parametrize(
    ("name", "path", "place"),
    [
        ("torch.nn.functional", "/x/torch/nn/functional.py", "torch/nn/functional.py"),
        ("torch.nn", "/x/torch/nn/__init__.py", "torch/nn/__init__.py"),
        ("six", "/x/six.py", "six.py"),
        ("a._C", "/x/a/_C.cpython-311-x86_64-linux-gnu.so", "a/_C.cpython-311-x86_64-linux-gnu.so"),
    ],
)
def test_a_module_stands_below_its_root_by_its_name(name: str, path: str, place: str) -> None:
    assert imported.relative_path(name, path) == place


def test_generated_modules_are_no_code_of_the_project(tmp_path: Path) -> None:
    made = {
        "torch._inductor.runtime.compile_tasks.abc": str(tmp_path / "abc.py"),
        "kernel": str(tmp_path / "torchinductor_me" / "ab" / "kernel.py"),
        "mine": str(tmp_path / "mine.py"),
    }
    assert list(imported.project_files(made)) == ["mine"]
