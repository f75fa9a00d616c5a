"""Change points beside Apache Otava's, on the series of its own tests: `python -m benchmarks.otava [--env FOLDER]`.

Otava (formerly Hunter) is installed into an environment of its own, and its tests run there with a plugin that records
every series they analyze or import, with the parameters and the change points. ``FOLDER`` keeps the environment.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import tarfile
import tempfile
import venv
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from receipts.plugins.track.change_points import MIN_LAUNCHES, changes

RELEASE: Final = "apache-otava==0.8.0"
# Needs Docker, uv or the terminal of its authors; none of them has a series of its own.
LEFT_OUT: Final = ("--ignore-glob=*e2e*", "--ignore-glob=*cli_help*")
DEFAULTS: Final = {"window_len": 50, "max_pvalue": 0.001, "min_magnitude": 0.0}
PLUGIN: Final = """
import json, os, random
import otava.analysis, otava.series

DEFAULTS = json.loads(os.environ["DEFAULTS"])
find, begin, seen = otava.analysis.compute_change_points, otava.series.Series.__init__, []

def record(values, given, places):
    test = os.environ.get("PYTEST_CURRENT_TEST", "").split("::")[-1].split(" ")[0]
    seen.append({"test": test, "values": [float(value) for value in values], "given": given, "otava": places})

def recorded(series, *args, **named):
    result = find(series, *args, **named)
    given = {**DEFAULTS, **dict(zip(DEFAULTS, args)), **named}
    record(series, {name: given[name] for name in DEFAULTS}, [int(item.index) for item in result[0]])
    return result

def begun(self, *args, **named):
    begin(self, *args, **named)
    for values in self.data.values():
        values = [value for value in values if value is not None]
        record(values, DEFAULTS, [int(item.index) for item in find(values, **DEFAULTS)[0]] if len(values) > 1 else [])

otava.analysis.compute_change_points = otava.series.compute_change_points = recorded
otava.series.Series.__init__ = begun

def pytest_runtest_setup(item):
    random.seed(25)

def pytest_sessionfinish(session):
    with open(os.environ["SERIES"], "w") as stream:
        json.dump(seen, stream)
"""


def environment(folder: Path) -> Path:
    """The Python of an environment with Otava and pytest; it is made where it is not there."""
    python = folder / "env" / "bin" / "python"
    if not python.exists():
        venv.create(folder / "env", with_pip=True)
        _run([python, "-m", "pip", "install", "-q", RELEASE, "pytest"])
        _run([python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", RELEASE, "-d", folder])
    return python


def recorded(folder: Path) -> list[dict[str, Any]]:
    """What Otava's tests analyzed: values, parameters and Otava's change points, each once."""
    python = environment(folder)
    (folder / "recording.py").write_text(PLUGIN, encoding="utf-8")
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder / "source", filter="data")
    seen = folder / "series.json"
    tests = next((folder / "source").glob("*/tests"))
    named = {"PYTHONPATH": str(folder), "SERIES": str(seen), "DEFAULTS": json.dumps(DEFAULTS), "PATH": "/usr/bin:/bin"}
    _run([python, "-m", "pytest", "-q", "-p", "recording", *LEFT_OUT, "tests"], tests.parent, named)
    each = {json.dumps([item["values"], item["given"]]): item for item in json.loads(seen.read_text(encoding="utf-8"))}
    return sorted(each.values(), key=lambda item: (len(item["values"]), item["values"]))


def _run(command: Sequence[str | Path], folder: Path | None = None, named: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(list(map(str, command)), cwd=folder, env=named, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def ours(values: Sequence[float], smallest: float) -> dict[int, str]:
    """Places of steps with their sizes, those of a size; a drift at its beginning."""
    return {
        item.at: f"{item.ratio - 1.0:+.1%}{' drift' if item.kind == 'drift' else ''}"
        for item in changes([math.log(value) for value in values])
        if max(abs(item.ratio - 1.0), abs(1.0 / item.ratio - 1.0)) > smallest
    }


def alone(some: Sequence[int], others: Sequence[int]) -> list[int]:
    """Places with none of the others within one launch."""
    return [at for at in some if all(abs(at - other) > 1 for other in others)]


def main() -> None:
    """Print both, series by series, and how many agree."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.otava", description=__doc__)
    parser.add_argument("--env", type=Path, help="keep the environment there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = (options.env or Path(scratch)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        every = recorded(folder)
    totals = dict.fromkeys(("series", "agree", "otava", "ours", "only otava", "only ours"), 0)
    long_enough = [item for item in every if len(item["values"]) >= 2 * MIN_LAUNCHES and min(item["values"]) > 0.0]
    print(
        f"{len(every) - len(long_enough)} left out: fewer than {2 * MIN_LAUNCHES} values, or one that has no logarithm"
    )
    for values, group in groupby(long_enough, key=lambda item: item["values"]):
        for item in group:
            given = item["given"]
            wanted = f"p < {given['max_pvalue']:g}, over {given['min_magnitude']:.0%}"
            name = f"{item['test']}, {len(values)} values, {wanted}"
            mine = ours(values, given["min_magnitude"])
            only = alone(item["otava"], list(mine)), alone(list(mine), item["otava"])
            if mine or item["otava"]:
                print(f"{name}\n  Otava {item['otava']}\n  ours  {', '.join(f'{at} ({mine[at]})' for at in mine)}")
                print(f"  only Otava {only[0]}, only ours {only[1]}" if any(only) else "  agree within one launch")
            if {**given, "window_len": DEFAULTS["window_len"]} == DEFAULTS:
                counts = (1, not any(only), len(item["otava"]), len(mine), len(only[0]), len(only[1]))
                totals = {key: totals[key] + count for key, count in zip(totals, counts, strict=True)}
    print(
        f"at Otava's default threshold: {totals['agree']} of {totals['series']} series agree within one launch; "
        f"{totals['otava'] - totals['only otava']} of Otava's {totals['otava']} change points are ours, "
        f"{totals['ours'] - totals['only ours']} of our {totals['ours']} are Otava's"
    )


if __name__ == "__main__":
    main()
