"""The frontier: a card a lane."""

from __future__ import annotations

from receipts.api.frontier import page
from receipts.serve.operation import Call
from receipts.serve.pages.view import View


def frontier(call: Call) -> View:
    """A card a lane: proven beside reported results of its newest 26 weeks, and what to do next."""
    return View(page(call.server.frontier()))
