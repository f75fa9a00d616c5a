"""``receipts import``: records that others keep, turned into receipts, and what another store exported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from receipts.cli.import_published import golden, mlflow, mlperf
from receipts.cli.import_store import store
from receipts.cli.importing import Destination, deliver, to_receipts
from receipts.cli.session import Session
from receipts.cli.verb import Answer, group, verb

if TYPE_CHECKING:
    from receipts.workflows.tables.notebook import ImportedTable


@group("import")
def command() -> None:
    """Import tables that people keep, or another store's export. Importing invents no values.

    Examples:
      receipts import notebook runs.json --mapping mapping.toml
      receipts import table performance-summary.md --mapping megatron-bridge
      receipts import mlperf training_results_v5.0 --submit
      receipts import golden histories/*.jsonl --history --submit
      receipts import mlflow mlruns --submit
      receipts import store lab-export
    """


command.add_command(store)
command.add_command(mlperf)
command.add_command(golden)
command.add_command(mlflow)


@verb("table", of=command)
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option(
    "--mapping", required=True, metavar="NAME|FILE", help="A mapping that ships with receipts, or a TOML file."
)
@to_receipts
def table(session: Session, file: Path, mapping: str, to: Destination) -> Answer:
    """Read a JSON list, JSON lines, CSV or the tables of a Markdown page by a mapping.

    Values that the table does not state stay unstated. Unreadable values are printed, and kept under notes. Figures of
    a page that others published are quoted: they are imported as printed, and those that disagree with the formulas of
    the mapping are printed.

    Examples:
      receipts import notebook runs.json --mapping mapping.toml
      receipts import notebook notes.md --mapping mapping.toml --submit
      receipts import table performance-summary.md --mapping megatron-bridge -o receipts/
      receipts import table README.md --mapping mine.toml --submit

    Mappings that ship: dgxc-benchmarking, gpu-recipes, llm-foundry, maxtext-tiering, megatron-bridge, torchtitan,
    tpu-recipes. Their format: docs/import-notebook.md. Without -o or --submit nothing is written: the values that can
    and cannot be read are printed. Exit codes: 0 every row became a receipt, 2 some row or file did not, 4 the store
    failed.
    """
    from receipts.publish.imported import table as page
    from receipts.receipt import Document
    from receipts.workflows.tables.notebook import import_file
    from receipts.workflows.tables.prepare import mapping_path

    imported = import_file(file, mapping_path(mapping))
    documents = [Document(item.parsed.raw, item.row.where) for item in imported.receipts]
    refused = [(item.where, item.problems) for item in imported.refused]
    return deliver(session, documents, refused, to, lambda: _json(imported), lambda where: page(imported, where))


command.add_command(table, "notebook")


def _json(table: ImportedTable) -> dict[str, object]:
    return {
        "receipts": [
            {"row": item.row.where, "id": item.parsed.id, "label": item.parsed.receipt.run.label}
            for item in table.receipts
        ],
        "refused": [
            {"row": item.where, "problems": [problem._asdict() for problem in item.problems]} for item in table.refused
        ],
        "unread": [{"row": item.where, "field": item.to, "text": item.text} for item in table.unread],
        "unnamed": dict(table.unnamed),
        "disagreements": [
            {"row": item.where, "says": item.says, "stated": item.found, "expected": item.expected}
            for item in table.disagreements
        ],
    }
