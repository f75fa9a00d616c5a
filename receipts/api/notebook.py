"""Pages in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from receipts.publish.page import Page


def shown(page: Page) -> str:
    """The page as HTML that stands inside a notebook's cell, with its own style."""
    from receipts.publish.render.html import html

    return html(page)
