"""The size and shape of the engine, by its own files: `python -m benchmarks.house` prints the table.

A *kernel* line stands in `receipts/` outside the rings (`readers/`, `emit/`, `plugins/`). Circles are of imports that a
module runs when it is loaded; those for type checkers alone do not count.
"""

from __future__ import annotations

import ast
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RINGS = ("readers", "emit", "plugins")
LONG_FUNCTION, LONG_FILE = 60, 450
_COUNT = """
import sys
from receipts.cli import main
main(sys.argv[1:])
print(sum(name.split(".")[0] == "receipts" for name in sys.modules), file=sys.stderr)
"""


@dataclass(frozen=True)
class SourceFile:
    """One file of the engine."""

    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax."""
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        """How many lines it has."""
        return self.text.count("\n")

    @property
    def room(self) -> str:
        """The folder of `receipts/` that it stands in."""
        return self.path.relative_to(ROOT).parts[1]

    @property
    def module(self) -> str:
        """Its dotted name."""
        parts = self.path.relative_to(ROOT).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @cached_property
    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Its functions and methods, nested ones too."""
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]

    @property
    def import_lines(self) -> int:
        """Lines of its import statements."""
        found = (node for node in ast.walk(self.tree) if isinstance(node, ast.Import | ast.ImportFrom))
        return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in found)


def source_files() -> list[SourceFile]:
    """Every Python file of the engine."""
    return [SourceFile(path, path.read_text(encoding="utf-8")) for path in sorted((ROOT / "receipts").rglob("*.py"))]


def circles(files: list[SourceFile]) -> int:
    """How many imports at loading must go before no circle of files is left."""
    names = {file.module for file in files}
    graph = {file.module: {name for name in _loaded(file) if name in names and name != file.module} for file in files}
    found = 0
    while True:
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            circle: list[str] = error.args[1]
            graph[circle[1]].discard(circle[0])
            found += 1
        else:
            return found


def _loaded(file: SourceFile) -> Iterator[str]:
    """Modules that a file imports when it is loaded."""
    todo: list[ast.stmt] = list(file.tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo += node.orelse
        elif isinstance(node, ast.If | ast.Try | ast.With):
            todo += node.body
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def loaded_by_submit() -> int:
    """Modules of the engine that `receipts submit FILE` loads."""
    with tempfile.TemporaryDirectory() as folder:
        example = ROOT / "examples" / "cpu" / "attention-math-1.json"
        environment = {**os.environ, "RECEIPTS_STORE": f"{folder}/store.sqlite", "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", _COUNT, "submit", str(example)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return int(done.stderr.split()[-1])


def rows() -> Iterator[tuple[str, str, str]]:
    """Each measure: what, its figure, and its bar."""
    files = source_files()
    lines = sum(file.lines for file in files)
    kernel = sum(file.lines for file in files if file.room not in RINGS)
    functions = [node for file in files for node in file.functions]
    private = sum(node.name.startswith("_") and not node.name.startswith("__") for node in functions)
    long = sum((node.end_lineno or node.lineno) - node.lineno >= LONG_FUNCTION for node in functions)
    plugins: dict[str, int] = {}
    for file in files:
        if file.room == "plugins" and len(file.path.relative_to(ROOT).parts) > 3:
            name = file.path.relative_to(ROOT).parts[2]
            plugins[name] = plugins.get(name, 0) + file.lines
    median = statistics.median(file.lines for file in files)
    yield "lines", f"{lines:,}", "104,000"
    yield "kernel", f"{kernel:,}", "56,500"
    yield f"functions over {LONG_FUNCTION} lines", str(long), "15"
    yield "largest plugin", f"{max(plugins.values(), default=0):,}", "4,500"
    yield "files", str(len(files)), "480"
    yield "median lines of a file", f"{median:.0f}", "at least 160"
    yield f"files over {LONG_FILE} lines", str(sum(file.lines > LONG_FILE for file in files)), "3"
    yield "import lines", f"{100 * sum(file.import_lines for file in files) / lines:.1f} %", "5.5 %"
    yield "private functions a thousand lines", f"{1000 * private / lines:.1f}", "16"
    yield "own modules that `submit FILE` loads", str(loaded_by_submit()), "130"
    yield "circles of files", str(circles(files)), "0"


def main() -> None:
    """Print the table."""
    print(f"{'what':<40} {'now':>10}  bar")
    for what, now, bar in rows():
        print(f"{what:<40} {now:>10}  {bar}")


if __name__ == "__main__":
    main()
