"""Hooks of MkDocs: pages outside ``docs/`` join the site, and links hold on the site as they do in the checkout.

A page of ``docs/`` keeps its path there; ``schema/receipt-1.md`` and the files of the checkout's root keep theirs. A
link to anything else of the checkout (source, a folder) becomes plain text. A link to nothing is left as it is, so that
the strict build fails on it.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = {  # by their paths in the checkout; the README is no index here, docs/README.md is
    "README.md": "introduction.md",
    **{
        name: name
        for name in (
            "CHANGELOG.md",
            "CONTRIBUTING.md",
            "SECURITY.md",
            "LICENSE",
            "schema/receipt-1.md",
            "schema/claims-1.schema.json",
        )
    },
}
_IN_CHECKOUT = {there: here for here, there in OUTSIDE.items()}
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^][]|\[[^][]*\])*)\]\((?P<target>[^)\s:]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that stand outside ``docs/``."""
    from mkdocs.structure.files import File

    for here, there in OUTSIDE.items():
        files.append(File.generated(config, there, abs_src_path=str(ROOT / here)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite the links of one page."""
    at = page.file.src_uri
    source = _IN_CHECKOUT.get(at, f"docs/{at}")
    parts = re.split(r"(^(?:```|~~~).*?^(?:```|~~~)[ ]*$)", markdown, flags=re.DOTALL | re.MULTILINE)
    return "".join(
        part if part.startswith(("```", "~~~")) else _LINK.sub(lambda link: _rewritten(link, source, at), part)
        for part in parts
    )


def _rewritten(link: re.Match[str], source: str, at: str) -> str:
    target, _, anchor = link["target"].partition("#")
    if not target:
        return link[0]
    here = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    if here in OUTSIDE or (here.startswith("docs/") and (ROOT / here).is_file()):
        there = OUTSIDE.get(here, here.removeprefix("docs/"))
        relative = posixpath.relpath(there, posixpath.dirname(at) or ".")
        return f"{link['image']}[{link['text']}]({relative}{'#' * bool(anchor)}{anchor})"
    return link["text"] if (ROOT / here).exists() else link[0]
