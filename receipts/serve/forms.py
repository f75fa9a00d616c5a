"""The forms of an answer: the JSON of the command, or its page as text, Markdown or HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from receipts.publish.render.markdown import markdown
from receipts.publish.render.terminal import Terminal
from receipts.serve.operation import FLAG, Call, Param, Reply

if TYPE_CHECKING:
    from receipts.api.answer import Answer

MEDIA: Final = {"json": "application/json", "text": "text/plain", "markdown": "text/markdown"}
FORMS: Final = (
    Param("format", {"type": "string", "enum": list(MEDIA)}, "The form of the answer; json by default"),
    Param(
        "width", {"type": "integer", "minimum": 40, "maximum": 500}, "Columns of the text; without it tables are whole"
    ),
    Param("color", FLAG, "Color the text, for a terminal"),
    Param("verbose", FLAG, "Open what is folded in the text"),
)
# What a command ends with: 0 yes, 1 no, 3 undecided.
CODE: Final = "Receipts-Exit-Code"


def reply(call: Call, answer: Answer, **page: Any) -> Reply:
    """An answer in the form that was asked for. ``page`` are further arguments of its page."""
    form = call.get("format", "json")
    headers = {CODE: str(answer.exit_code)}
    if form == "json":
        return Reply(answer.to_json() + "\n", headers=headers)
    shown = answer.page(**page)
    if form == "markdown":
        return Reply(markdown(shown) + "\n", MEDIA[form], headers=headers)
    width = call.get("width")
    terminal = Terminal(width or 100, width, call.get("color", False))
    lines = terminal.page(shown, opened=call.get("verbose", False))
    return Reply("".join(f"{line}\n" for line in lines), MEDIA[form], headers=headers)
