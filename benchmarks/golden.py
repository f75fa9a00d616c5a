"""Changes in histories of golden values: `python -m benchmarks.golden FOLDER [--metric step_seconds]`.

``FOLDER`` holds histories of Megatron-LM's golden values (`*.jsonl`, one JSON object a commit, in its order). They are
imported and followed by the commands themselves; each change point must begin at a commit of its own file that changed
the values there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Final

RECEIPTS: Final = (sys.executable, "-m", "receipts")


def receipts(store: Path, *words: str) -> str:
    """What a command prints; its exit code is not of interest."""
    done = subprocess.run([*RECEIPTS, "--store", str(store), *words], capture_output=True, text=True, check=False)
    if not done.stdout:
        raise SystemExit(done.stderr)
    return done.stdout


def touched(file: Path) -> dict[str, str]:
    """Commits that changed the values of a file, by the start that a label has, with their subjects."""
    commits, before = {}, None
    for line in file.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        values = {name: block for name, block in entry.items() if isinstance(block, dict)}
        if values != before:
            commits[entry["commit"][:12]] = entry.get("subject", "")
        before = values
    return commits


def changes(line: dict[str, Any], files: dict[str, dict[str, str]]) -> list[tuple[bool, str]]:
    """Each change of a line: whether it lies on a commit of the line's one file, and what it is."""
    tests = {launch["name"].rpartition(" ")[0] for launch in line["launches"]}
    commits = files.get(next(iter(tests)), {}) if len(tests) == 1 else {}
    result = []
    for change in line["changes"]:
        commit = change["name"].rpartition(" ")[2]
        what = "incident" if change["incident"] else change["change"]
        size = f"{change['ratio'] - 1.0:+.1%} ({change['launches'][0]} + {change['launches'][1]} launches)"
        subject = commits.get(commit, "is no commit of the file")
        result.append((commit in commits, f"{size}, {what}, {', '.join(sorted(tests))}\n  {commit} {subject}"))
    return result


def main() -> int:
    """Print every change; 1 where one lies elsewhere."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.golden", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--metric", default="step_seconds")
    options = parser.parse_args()
    paths = sorted(options.folder.rglob("*.jsonl"))
    files = {path.name.partition("__golden_values")[0]: touched(path) for path in paths}
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "golden.sqlite"
        print(receipts(store, "import", "golden", *map(str, paths), "--history", "--submit").strip())
        lines = json.loads(receipts(store, "history", "--lane", "unlisted", "--metric", options.metric, "--json"))
    every = [item for line in lines if line["launches"] for item in changes(line, files)]
    for _, text in every:
        print(text)
    launches = Counter(len(line["launches"]) for line in lines)
    enough = sum(count for length, count in launches.items() if length >= 4)
    on = sum(good for good, _ in every)
    print(
        f"{len(lines)} lines of {len(files)} files, {enough} of four samples or more; {len(every)} change points, "
        f"{on} on a commit that changed the values of the line's file"
    )
    return int(on < len(every) or not every)


if __name__ == "__main__":
    raise SystemExit(main())
