"""Studies as questions of an open store."""

from __future__ import annotations

from receipts import metrics as registry
from receipts.api.answer import Listed
from receipts.api.store import Given, Store


def bridge(store: Store, a: Given, b: Given, *, metric: str = registry.DEFAULT, most: int = 200) -> Listed:
    """The chain of accepted one-axis comparisons from A to B, or the fewest runs that would complete one.

    A row is a hop of the best chain. At most ``most`` hops are judged. Raises NotFound.
    """
    from receipts.plugins.study.bridge import bridge as search
    from receipts.plugins.study.bridge import bridge_as_data
    from receipts.plugins.study.bridge_page import bridge_page

    bridged = search(store.opened, store.one(a), store.one(b), store.rulebook, metric=metric, most=most)
    document = bridge_as_data(bridged)
    hops = document["chains"][0] if document["chains"] else []
    return Listed(document, hops, lambda: bridge_page(bridged), bridged.exit_code)
