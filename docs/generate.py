"""Writes every page and schema that is generated: ``python docs/generate.py``, or ``--check`` to name stale ones.

The receipt's model, the verdict's dataclasses, the rules' docstrings and the commands' help are the only sources.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(Path(__file__).resolve().parent))

# A script's own folder comes first on its path, also where a test loads it from its file.
from pages import axes_page, cli_page, names_page, receipt_page, rule_pages  # noqa: E402 — the path comes first
from recorder_contract import argument_names, megatron_names, recorder_contract  # noqa: E402 — the path comes first
from schemas import claims_schema, receipt_schema, verdict_schema  # noqa: E402 — the path comes first

FOLDERS = ("schema", "docs/reference")
HAND_WRITTEN = (
    "schema/examples/",
    "docs/reference/benchmarks.md",
    "docs/reference/scale.md",
    "docs/reference/sight.md",
)


def pages() -> Mapping[str, str]:
    """Every generated file with its text, by its path in the checkout."""
    return {
        "schema/receipt-1.schema.json": _json(receipt_schema()),
        "schema/verdict-1.schema.json": _json(verdict_schema()),
        "schema/claims-1.schema.json": _json(claims_schema()),
        "schema/receipt-1.md": receipt_page(),
        "receipts/emit/contract.json": recorder_contract(),
        "receipts/emit/megatron.json": megatron_names(),
        "receipts/axes/argument_names.json": argument_names(),
        "docs/reference/axes.md": axes_page(),
        "docs/reference/names.md": names_page(),
        "docs/reference/cli.md": cli_page(),
        **rule_pages(),
    }


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def stale(wanted: Mapping[str, str], root: Path = ROOT) -> list[str]:
    """Files that are missing or differ, and generated files that nothing generates any more."""
    found = [name for name, text in wanted.items() if _read(root / name) != text]
    for folder in FOLDERS:
        there = (path.relative_to(root).as_posix() for path in (root / folder).rglob("*") if path.is_file())
        found += [name for name in there if name not in wanted and not name.startswith(HAND_WRITTEN)]
    return sorted(found)


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def main(arguments: list[str] | None = None) -> int:
    """Write what is stale, or with ``--check`` only name it and return 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="name stale files and exit 1; write nothing")
    asked = parser.parse_args(arguments)
    wanted = pages()
    names = stale(wanted)
    for name in names:
        print(f"stale: {name}" if asked.check else f"wrote {name}" if name in wanted else f"removed {name}")
        if asked.check:
            continue
        if name not in wanted:
            (ROOT / name).unlink()
            continue
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(wanted[name], encoding="utf-8")
    return 1 if asked.check and names else 0


if __name__ == "__main__":
    sys.exit(main())
