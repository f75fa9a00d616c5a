"""What completes a word that is typed: ids and labels of the store, metrics, rules and lanes, by what is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from receipts.cli.session import Session

MAX_COMPLETIONS: Final = 200


def completing(what: str, *, files: bool = False) -> Callable[..., list[CompletionItem]] | None:
    """What completes a parameter by its name; None leaves it to the shell. With ``files`` it may be a file as well."""

    def complete(ctx: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        from receipts.cli.session import Session

        try:
            words = list(_words(ctx.ensure_object(Session), what))
        except Exception:  # a shell shows no error while somebody types
            return []
        items = [CompletionItem(word, help=text) for word, text in words if word.startswith(begun)][:MAX_COMPLETIONS]
        return items or [CompletionItem(begun, type="file")] if files else items

    return complete if what in ("receipt", "metric", "code", "lane", "lanes") else None


def _words(session: Session, what: str) -> Iterator[tuple[str, str]]:
    """Each word, with what a shell may show beside it."""
    if what == "receipt":
        from receipts.store import Filters

        for item in session.store.find(Filters(limit=MAX_COMPLETIONS)):
            yield item.id[:12], item.label or ""
            if item.label:
                yield item.label, item.id[:12]
    elif what == "metric":
        from receipts import metrics

        yield from ((item.name, item.title) for item in metrics.METRICS.values())
    elif what == "code":
        yield from ((item.code, item.name) for item in session.rulebook.rules.rules)
    else:
        yield from ((item, "") for item in session.rulebook.lanes.names())
