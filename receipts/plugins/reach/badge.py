"""``badge``: what a receipt or a claim shows, as a badge: SVG, or the JSON of an endpoint of shields.io."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Annotated, Any, Final

from receipts.api.question import WORD, File, Metric, Param, question
from receipts.base.errors import NotFound
from receipts.base.untrusted_text import plain

if TYPE_CHECKING:
    from receipts.api.answer import Answer
    from receipts.api.session import Session

# Each has a contrast of at least 4.5 to 1 under white letters.
COLORS: Final = {"green": "#00684b", "yellow": "#8a5f00", "red": "#b3261e", "gray": "#5c5c5c"}
OF_STATUS: Final = {
    **dict.fromkeys(("valid", "supported", "holds", "accepted"), "green"),
    **dict.fromkeys(("open", "unproven", "stale", "inconclusive"), "yellow"),
    **dict.fromkeys(("invalid", "refuted", "fails", "rejected", "retracted", "superseded"), "red"),
}
MAX_TEXT: Final = 60
WIDE, NARROW = "mwMW@%ABCDEFGHKNOQRUXYZ−…", "iljtfr.,:;'|!()[] I1"


def svg(label: str, message: str, color: str) -> str:
    """The badge as SVG, 20 pixels high; a reader of screens hears its text."""
    left, right = (plain(text, MAX_TEXT) for text in (label, message))
    first, second = (round(_width(text) + 12) for text in (left, right))
    name, one, two = (escape(text) for text in (f"{left}: {right}", left, right))
    letters = 'fill="#fff" text-anchor="middle" font-family="Verdana,Geneva,DejaVu Sans,sans-serif" font-size="11"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{first + second}" height="20" role="img" aria-label="{name}">'
        f'<title>{name}</title><clipPath id="r"><rect width="{first + second}" height="20" rx="3"/></clipPath>'
        f'<g clip-path="url(#r)"><rect width="{first}" height="20" fill="#444"/>'
        f'<rect x="{first}" width="{second}" height="20" fill="{COLORS[color]}"/></g>'
        f'<g {letters}><text x="{first / 2:g}" y="14" textLength="{first - 12}">{one}</text>'
        f'<text x="{first + second / 2:g}" y="14" textLength="{second - 12}">{two}</text></g></svg>\n'
    )


def _width(text: str) -> float:
    """How wide a text of Verdana, 11 pixels high, is, about: its length is then set to it."""
    return sum(9.0 if letter in WIDE else 4.6 if letter in NARROW else 7.0 for letter in text)


@question(
    "badge",
    path="/v1/badge",
    files={"svg": File(("--svg",), "image/svg+xml", "Also write the badge as SVG.")},
)
def badge(
    session: Session,
    name: Annotated[str, Param(WORD, "The receipt or the claim", metavar="ID|CLAIM", words=1)],
    *,
    metric: Metric = "tokens_per_second",
    label: Annotated[str | None, Param(WORD, "What the badge says on its left.", ("--label",), "TEXT")] = None,
) -> Answer:
    """Draw the badge of a receipt or a claim: its number and its verdict now.

    Examples:
      receipts badge @golden --svg badge.svg
      receipts badge mtp-off --label "MTP off" --svg badge.svg
      receipts badge 3f9c --metric mfu --json

    The JSON is an endpoint of shields.io. A number that nothing measured says so. A server draws it at
    /v1/badge?name=@golden&format=svg, for who may read. Exit codes: 0 valid or supported, 1 invalid, retracted or
    refuted, 2 wrong call, 3 open, unproven or stale.
    """
    from receipts.api.answer import Answer

    title, number, status = _shown(session, name, metric)
    color = OF_STATUS.get(status, "gray")
    message = f"{number}, {status}" if number else status
    data = {"schemaVersion": 1, "label": label or title, "message": message, "color": color, "status": status}
    code = {"green": 0, "red": 1}.get(color, 3)
    return Answer(
        data, f"{label or title}: {message}", code, files={"svg": lambda: svg(label or title, message, color)}
    )


def _shown(session: Session, name: str, metric: str) -> tuple[str, str, str]:
    """What a claim or receipt is called, its number, and its status. Raises NotFound."""
    from receipts import metrics
    from receipts.api.receipt import stored_receipt
    from receipts.questions.claims.stored import history

    store, wanted = session.opened(looked_up=[name]), metrics.get(metric)
    try:
        return name, "", history(store, name, session.rulebook).verdict.status
    except NotFound:
        parsed = store.get(name, repeated=True)
    shown: Any = stored_receipt(session, parsed.id)
    reading = session.rulebook.launch(parsed).read(wanted)
    number = "" if reading.value is None else metrics.shown(wanted, reading.value)
    if number and reading.source in ("stated", "derived"):
        number += " as stated"
    fell = shown.facts.superseded.get(parsed.id)
    status = shown.status if fell is None else "superseded" if fell[0] else "retracted"
    return parsed.receipt.run.label or parsed.id[:12], number, status
