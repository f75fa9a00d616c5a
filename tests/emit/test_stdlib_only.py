"""The recorder is imported where nothing but the standard library is."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import receipts
import receipts.emit

pytestmark = pytest.mark.slow

PACKAGE = Path(receipts.emit.__file__).parent
ROOT = PACKAGE.parents[1]
# Refuses every import from outside the standard library and this package, and every part of the engine but emit.
HOOK = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        head = name.partition(".")[0]
        if head == "receipts" and name != "receipts" and not name.startswith("receipts.emit"):
            raise ImportError("the engine: " + name)
        # The build's own settings, which `sysconfig` reads from a module of the standard library's folder.
        build = head.startswith("_sysconfigdata")
        if head not in sys.stdlib_module_names and head != "receipts" and not build:
            raise ImportError("from outside: " + name)
        return None
sys.meta_path.insert(0, Refuse())
sys.path.insert(0, %r)
"""
RUN = """
from receipts.emit import Recorder
with Recorder("cpu-torch", context="c", warmup=1, out="run.json", quiet=True) as rec:
    rec.state("model.hiden", 3)
    rec.attach("job.py", kind="script")
    for _ in range(5):
        with rec.step(tokens=8):
            with rec.span("data"):
                pass
        rec.loss(1.0)
print(sorted(name for name in sys.modules if name.partition(".")[0] not in sys.stdlib_module_names))
"""


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_imports_the_standard_library_and_its_own_package(path: Path) -> None:
    inside = [name for name in _imports(path) if name.partition(".")[0] == "receipts"]
    assert [name for name in inside if name != "receipts" and not name.startswith("receipts.emit")] == []
    if "integrations" not in path.parts:
        heads = {name.partition(".")[0] for name in _imports(path)}
        assert heads - set(sys.stdlib_module_names) - {"receipts"} == set()


def test_a_whole_run_needs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(HOOK % str(ROOT) + RUN, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-S", "-E", "job.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert len(found["measurement"]["step_durations_seconds"]) == 5
    assert found["evidence"][0]["sha256"]
    assert "did you mean model.hidden" in " ".join(found["notes"]["recorder"])
    assert "Error" not in " ".join(found["notes"]["recorder"])
    assert not {"torch", "jax", "numpy"} & set(ast.literal_eval(done.stdout))


def test_a_command_says_what_it_lacks_where_the_recorder_is_all_that_is_installed(tmp_path: Path) -> None:
    for hidden, words in (("click", "--help"), ("pydantic", "check run.json")):
        code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.modules[{hidden!r}] = None\n"
        code += f"from receipts.cli import main; sys.exit(main({words.split()!r}))"
        (tmp_path / "run.json").write_text("{}", encoding="utf-8")
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 2, done.stderr
        assert f"receipts: {hidden} is not installed" in done.stderr
        assert "Traceback" not in done.stderr


def test_the_package_itself_imports_nothing() -> None:
    code = HOOK % str(ROOT) + "import receipts; print(receipts.__version__)"
    done = subprocess.run([sys.executable, "-S", "-E", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == receipts.__version__, done.stderr
