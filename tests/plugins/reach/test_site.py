"""A static site of a store: every link leads to a file of it, and nothing asks for anything from elsewhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest

import report_store
from command_line import Shell, shell
from thorough import unless_thorough

__all__ = ["shell"]

PUBLISHED = Path(__file__).resolve().parents[4] / "shared/cases/published/mlperf-training-v4.1-llm.tar.xz"


def links(folder: Path) -> set[Path]:
    """The files that the pages of a site lead to. Fails for a link out of it, and for anything that is loaded."""
    targets = set()
    for page in folder.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"<(script|img|link|iframe|form)\b", text), page
        for address in re.findall(r'(?:href|src)="([^"#]*)', text):
            if address:
                target = (page.parent / address).resolve()
                assert target.is_relative_to(folder.resolve()), f"{page}: {address}"
                targets.add(target)
    return targets


@pytest.mark.slow
def test_a_site_has_each_receipt_comparisons_and_refusals_and_no_dead_link(shell: Shell) -> None:
    (shell.folder / "store.sqlite").unlink(missing_ok=True)
    report_store.fill(shell.folder / "store.sqlite", report_store.everything()).close()
    said = shell("site", "public", "--title", "Our <b>", "--json")
    assert said.code == 0, said.err
    folder = shell.folder / "public"
    standing = {item["id"] for item in shell("list", "--limit", "0", "--json").json}
    assert {page.stem for page in (folder / "r").glob("*.html")} == standing
    assert said.json["receipts"] == len(standing)
    for document in (folder / "r").glob("*.json"):
        assert sha256(document.read_bytes()).hexdigest() == document.stem
    assert all(target.is_file() for target in links(folder))
    assert "<h1>Our &lt;b&gt;</h1>" in (folder / "index.html").read_text()
    assert "accepted" in (folder / "comparisons.html").read_text()
    failed = [item["id"] for item in shell("list", "outcome=oom", "--limit", "0", "--json").json]
    assert failed
    assert all(f"r/{name}.html" in (folder / "refusals.html").read_text() for name in failed)


def test_written_again_a_site_has_no_receipt_that_was_retracted(shell: Shell) -> None:
    first, second = (shell.store(name, run__label=f"{name} <script>") for name in ("one", "two"))
    assert shell("site", "public").code == 0
    assert "<script>" not in (shell.folder / "public" / "receipts.html").read_text()
    # Who submitted is a matter of the store, and of no stranger.
    assert "submitted by" not in (shell.folder / "public" / "r" / f"{first}.html").read_text()
    shell("retract", first, "--reason", "wrong")
    assert shell("site", "public", "--no-documents").code == 0
    assert [item.name for item in (shell.folder / "public" / "r").iterdir()] == [f"{second}.html"]


def test_a_folder_that_holds_something_else_is_left_alone(shell: Shell) -> None:
    shell.store("one")
    (shell.folder / "index.html").write_text("mine")
    said = shell("site", str(shell.folder))
    assert (said.code, "name a new folder" in said.err) == (2, True)
    assert (shell.folder / "index.html").read_text() == "mine"
    held = shell.folder / "other"
    held.mkdir()
    (held / "receipts-site.json").write_text(json.dumps(["../index.html", "/etc/x", "r/../../index.html"]))
    assert shell("site", str(held)).code == 0
    assert (shell.folder / "index.html").read_text() == "mine"


@pytest.mark.slow
@pytest.mark.skipif(
    not unless_thorough(usual=False, thorough=True) or not PUBLISHED.exists(),
    reason="thorough, and it needs the published logs",
)
def test_the_published_logs_of_mlperf_are_a_site(tmp_path: Path) -> None:
    with tarfile.open(PUBLISHED) as packed:
        packed.extractall(tmp_path / "logs", filter="data")
    store = ("--store", str(tmp_path / "store.sqlite"))
    run = [sys.executable, "-m", "receipts", *store]
    subprocess.run([*run, "import", "mlperf", str(tmp_path / "logs"), "--submit"], check=False, capture_output=True)
    done = subprocess.run([*run, "site", str(tmp_path / "public"), "--json"], check=True, capture_output=True)
    assert json.loads(done.stdout)["receipts"] == 319
    assert all(target.is_file() for target in links(tmp_path / "public"))
