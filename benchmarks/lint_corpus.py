"""Precision and recall of ``receipts lint`` on labelled Markdown: ``python benchmarks/lint_corpus.py FOLDER``.

``labels.jsonl`` beside the files has one line a statement: ``file``, ``line`` and ``column`` from 1, and its ``text``;
``text`` may be replaced by ``length``, so that labels can be kept of pages that are not to be copied. A label with
``"claimed": false`` is a statement that lint does not claim to find: it counts neither way. With
``--labels FILE`` they lie elsewhere. A label is met by a statement that overlaps it, and a statement is right where it
overlaps a label. A page without labels has no statement: everything that is found on it is wrong.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Label:
    """One statement as a person marked it; columns from 1, ``end`` behind its last character."""

    file: str
    line: int
    column: int
    end: int
    text: str = ""
    claimed: bool = True


@dataclass
class Score:
    """Counts over some files, with what was wrong."""

    found: int = 0
    labels: int = 0
    wrong: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    @property
    def precision(self) -> float:
        """Share of what was found that is right; 1 where nothing was found."""
        return 1 - len(self.wrong) / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        """Share of the labels that were met; 1 where there are none."""
        return 1 - len(self.missed) / self.labels if self.labels else 1.0

    def __str__(self) -> str:
        right = self.found - len(self.wrong)
        met = self.labels - len(self.missed)
        return f"precision {self.precision:.3f} ({right}/{self.found}) · recall {self.recall:.3f} ({met}/{self.labels})"


def read_labels(path: Path) -> Iterator[Label]:
    """The labels of a folder."""
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        length = row["length"] if "length" in row else len(row["text"])
        yield Label(
            row["file"],
            row["line"],
            row["column"],
            row["column"] + length,
            row.get("text", ""),
            row.get("claimed", True),
        )


def score(folder: Path, pattern: str = "*", labels: Path | None = None) -> Score:
    """The score over the Markdown files of a folder whose names meet a pattern."""
    from receipts.plugins.lint.page import page
    from receipts.plugins.lint.statement import Statement
    from receipts.plugins.lint.verbs import pages

    marked: dict[str, list[Label]] = {}
    for label in read_labels(labels or folder / "labels.jsonl"):
        marked.setdefault(label.file, []).append(label)
    total = Score()
    for path in sorted(folder.glob("*.md")):
        if not fnmatch.fnmatch(path.name, pattern):
            continue
        ((_, text),) = pages([str(path)])
        found = [item for item in page(text, path.name) if isinstance(item, Statement) and item.values]
        every = marked.get(path.name, [])
        wanted = [one for one in every if one.claimed]
        total.found += len(found)
        total.labels += len(wanted)
        total.wrong += [f"{item.place} “{item.text}”" for item in found if not any(_meet(item, one) for one in every)]
        total.missed += [
            f"{one.file}:{one.line}:{one.column} “{one.text}”"
            for one in wanted
            if not any(_meet(item, one) for item in found)
        ]
    return total


def _meet(item: object, label: Label) -> bool:
    from receipts.plugins.lint.statement import Statement

    assert isinstance(item, Statement)
    start, end = (item.line, item.column), (item.end_line, item.end_column)
    return start < (label.line, label.end) and (label.line, label.column) < end


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the score, and with ``--show`` every error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--labels", type=Path, help="labels.jsonl, where it is not in the folder")
    parser.add_argument("--files", default="*", metavar="GLOB", help="only files of these names")
    parser.add_argument("--show", action="store_true", help="print what was wrong and what was missed")
    options = parser.parse_args(arguments)
    total = score(options.folder, options.files, options.labels)
    if options.show:
        for text in total.wrong:
            print(f"wrong:  {text}")
        for text in total.missed:
            print(f"missed: {text}")
    print(total)
    return 0


if __name__ == "__main__":
    sys.exit(main())
