"""What a page of the server is made of: the page model, controls above it, and where its links lead."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from receipts.plugins.serve.operation import Call
from receipts.publish.page import RUN, Code, Entry, Link, Page, Section, text

if TYPE_CHECKING:
    from receipts.store import Entry as Stored

NAV = (
    ("/", "Frontier"),
    ("/runs", "Runs"),
    ("/compare", "Compare"),
    ("/reports", "Reports"),
    ("/failures", "Failures"),
    ("/histories", "Histories"),
    ("/claims", "Claims"),
    ("/decisions", "Decisions"),
    ("/inbox", "Inbox"),
)

ROWS = 50  # of a table
RATE = "tokens_per_second_per_chip"
CODED: Final = re.compile(r"[EIW] ([A-Z]\d{3}) (.+)", re.DOTALL)
WARNED: Final = re.compile(r"([A-Z]\d{3}) (\w+)( on .+)?")


@dataclass(frozen=True)
class View:
    """A page with its template (in ``reports/parts``), the values that the template takes beside it, and its status."""

    page: Page
    template: str = "site"
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


def run(receipt: str, name: str = "") -> Link:
    """A link to a run."""
    return Link(name or receipt[:12], f"{RUN}{receipt}")


def in_words(page: Page) -> Page:
    """A page whose offenses are named in words, their codes after them."""

    def named(item: Entry) -> Entry:
        match = CODED.fullmatch(text(item.title))
        words = match[2].replace("_", " ") if match else ""
        return replace(item, title=(f"{words[:1].upper()}{words[1:]} ", Code(match[1]))) if match else item

    def warned(name: str) -> str:
        match = WARNED.fullmatch(name)
        return f"{match[2].replace('_', ' ').capitalize()}{match[3] or ''} ({match[1]})" if match else name

    def worded(item: Section) -> Section:
        points = tuple((warned(name), cells) for name, cells in item.points)
        return replace(item, entries=tuple(map(named, item.entries)), points=points)

    return replace(page, sections=tuple(map(worded, page.sections)))


def lead(anchor: str) -> str | None:
    """Where a link of the page model leads: a run, or a path of the server."""
    if anchor.startswith(RUN):
        return f"/runs/{anchor.removeprefix(RUN)}"
    return anchor if anchor.startswith("/") else None


def rendered(view: View, here: str, who: str, form: str, live: str = "") -> str:
    """The page of a view as HTML: at a path of the server, for who is signed in, its forms with their proof.

    ``live`` is the script of a page that follows the store.
    """
    from receipts.publish.markup import anchors, environment

    known = set(anchors(view.page.sections))

    def there(anchor: str) -> str | None:
        return f"#{anchor}" if anchor in known else lead(anchor)

    template = environment().get_template(f"parts/{view.template}.html.j2")
    return template.render(page=view.page, lead=there, here=here, nav=NAV, who=who, form=form, live=live, **view.values)


def url(path: str, query: Sequence[tuple[str, str]]) -> str:
    """A path with its query."""
    return f"{path}?{urlencode(query)}" if query else path


def may(call: Call, scope: str) -> bool:
    """Whether who asks may do what a scope names."""
    return call.token is None or call.token.may(scope)


def moment(item: Stored) -> str:
    """When a launch started, as a table has it."""
    return f"{item.started:%Y-%m-%d %H:%M}"
