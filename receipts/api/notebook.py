"""Pages in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from receipts.publish.page import Page


def shown(page: Page) -> str:
    """The page as HTML that stands inside a notebook's cell."""
    from html import escape

    from receipts.publish.render.terminal import Terminal

    return f"<pre>{escape(chr(10).join(Terminal().page(page)))}</pre>"
