"""The datasets as tables in Markdown, for docs/export.md: ``python -m receipts.workflows.export.page`` prints them."""

from __future__ import annotations

import sys

from receipts.workflows.export.datasets import KINDS, datasets


def tables() -> str:
    """One table a dataset."""
    lines = ["| type | in Parquet |", "| --- | --- |", *(f"| {kind} | {storage} |" for kind, storage in KINDS.items())]
    for dataset in datasets().values():
        where = " In folders by lane and week." if dataset.partitioned else ""
        lines += ["", f"### {dataset.name}", "", f"{dataset.description}.{where}", ""]
        lines += ["| field | type | what it is |", "| --- | --- | --- |"]
        for field in dataset.fields:
            path = f" (`{field.path}`)" if field.path and field.path not in field.description else ""
            unit = f", {field.unit}" if field.unit and field.unit not in field.description else ""
            optional = "" if field.required else ", may be null"
            lines.append(f"| `{field.name}` | {field.kind}{optional} | {field.description}{unit}{path} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(tables())
