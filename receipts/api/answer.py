"""An answer: the command's JSON, the page that a report shows, and a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from receipts.publish.json_text import json_text

if TYPE_CHECKING:
    import pandas as pd

    from receipts.publish.page import Page


class Answer:
    """What a question was answered with."""

    def __repr__(self) -> str:
        from receipts.publish.page import text

        return f"<{type(self).__name__} {text(self.page().headline) or self.page().title}>"

    @property
    def exit_code(self) -> int:
        """The code that the command ends with: 0 yes, 1 no, 3 undecided."""
        return 0

    def to_dict(self) -> Any:
        """The answer as data, in JSON's types."""
        raise NotImplementedError

    def to_json(self) -> str:
        """The text that the command prints with ``--json``, without the last line's end."""
        return json_text(self.to_dict())

    def page(self) -> Page:
        """The answer as a page, which a terminal, a report and a notebook show."""
        raise NotImplementedError

    def frame(self) -> pd.DataFrame:
        """The answer as a table with typed columns."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        """What a notebook shows: the page inside a cell, with its own style."""
        from receipts.publish.render.html import html

        return html(self.page())
