"""An open store, as a program asks it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from receipts import metrics as registry
from receipts.api.answer import Listed, Receipts
from receipts.api.comparison import Comparison, compared
from receipts.api.receipt import Receipt, parsed, rulebook
from receipts.base.plugins import question
from receipts.questions.comparisons import Comparisons, Floors
from receipts.questions.corroboration import reproduced, signer
from receipts.questions.sides import Join

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook
    from receipts.metrics import Launch
    from receipts.receipt import Parsed
    from receipts.store import Store as Opened
    from receipts.store import Submitted

Given = Any  # a word, or a `Path`, bytes, mapping or receipt, which `receipts.api.receipt.parsed` reads
Order = Literal["newest", "oldest", "stored"]


@dataclass(frozen=True, eq=False, repr=False)
class Store(AbstractContextManager["Store"]):
    """A store of receipts. Words name what they name in a command: id, prefix, label, ``label=glob``, ``@pin``.

    Use it in a ``with`` block, or `close` it. Every method raises StoreError if the store cannot be reached.
    """

    opened: Opened
    rulebook: Rulebook = field(default_factory=rulebook)
    floors: Floors | None = None

    def __post_init__(self) -> None:
        if not hasattr(self.opened, "database"):
            raise TypeError(f"{self.opened!r} is not an open store; open one with receipts.open(path or URL)")

    def __repr__(self) -> str:
        return f"<receipts store {self.opened.url}>"

    def __getattr__(self, name: str) -> Any:
        """A question that a plugin adds, such as `bridge`, asked of this store. Raises AttributeError."""
        asked = None if name.startswith("_") else question(name)
        if asked is None:
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        return partial(asked, self)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self.opened.close()

    def submit(self, receipt: Given) -> Submitted:
        """Check and store a receipt: a path, bytes, a mapping or a `Receipt`. Gives its ``id``, ``status``, ``new``.

        The same bytes again are harmless. Raises InputError with every problem of the document, and ConflictError if
        the store holds another receipt of the launch.
        """
        from receipts.receipt import Document
        from receipts.workflows.submit import submit

        one = parsed(receipt)
        (outcome,) = submit([Document(one.raw, one.source)], self.opened, self.rulebook)
        if outcome.submitted is None:
            assert outcome.error is not None
            raise outcome.error
        return outcome.submitted

    def get(self, word: str) -> Receipt:
        """The one receipt that a word names, with what the store knows of it. Raises NotFound."""
        one = self.opened.get(word)
        return Receipt(
            one,
            self.rulebook,
            facts=self.opened.query.facts([one]),
            decisions=self.opened.published.decisions([one.id]),
            actor=self.opened.entry(one.id).actor,
            signer=signer(self.opened, one),
            reproduced=reproduced(Comparisons(self.opened, self.rulebook, floors=self.floors), self.opened, one),
        )

    def launch(self, receipt: str) -> Launch:
        """The launch of a stored receipt, by its id: steps, steady segment and readings of every metric."""
        return self.rulebook.launch(self.opened.parsed(receipt))

    def find(
        self, *conditions: str, limit: int | None = None, order: Order = "newest", superseded: bool = False, **axes: Any
    ) -> Receipts:
        """Receipts that meet every condition: ``"chips>=8"``, or a column or leaf by its name, ``lane="cpu-torch"``.

        ``__`` in a name is a dot: ``batch__micro_batch=4``. None means *not stated*. ``limit`` None gives all. Raises
        UsageError for a condition that is none, and NotFound for a name that no receipt has.
        """
        from receipts.store import Filters, condition

        words = [f"{name.replace('__', '.')}={'-' if value is None else value}" for name, value in axes.items()]
        wanted = tuple(condition(word) for word in (*conditions, *words))
        return Receipts(self, list(self.opened.find(Filters(wanted, superseded, order, limit))))

    def compare(
        self,
        a: Given | list[Given],
        b: Given | list[Given],
        *,
        metric: str = registry.DEFAULT,
        waivers: Mapping[str, str] = MappingProxyType({}),
        study: str | None = None,
        witnesses: Iterable[Given] = (),
        join: Join = "session",
    ) -> Comparison:
        """B against A, each a word, a receipt, or a list of them; with the stored launches of their session.

        ``join``: *only* adds no launch to those that are named, *all* every stored one of their configurations.
        ``waivers`` are axes that do not count, each with the reason. Raises NotFound and UsageError.
        """
        groups = (a, b, list(witnesses))
        left, right, shown_by = ([_named(item) for item in (it if isinstance(it, list) else [it])] for it in groups)
        return compared(
            self.opened,
            self.rulebook,
            left,
            right,
            metric=metric,
            witnesses=shown_by,
            waivers=waivers,
            study=study,
            join=join,
            floors=self.floors,
        )

    def neighbours(
        self, receipt: Given, *, metric: str = registry.DEFAULT, axis: str | None = None, limit: int = 10
    ) -> Listed:
        """Stored configurations one axis away, each compared; the best first. At most ``limit`` for each axis.

        A row has axis, members, receipt, status, effect, ratio, low and high. Raises NotFound.
        """
        from receipts.api.lists import NEIGHBOUR_COLUMNS, neighbours_as_data
        from receipts.axes import axis_named
        from receipts.publish.neighbours import page
        from receipts.questions.neighbours import neighbours

        named = axis_named(axis) if axis is not None else None
        near = neighbours(self.opened, self.one(receipt), self.rulebook, metric=metric, axis=named, limit=limit)
        document = neighbours_as_data(near)
        rows = [*document["neighbours"], *document["refused"]]
        return Listed(document, rows, lambda: page(near), near.exit_code, NEIGHBOUR_COLUMNS)

    def preflight(self, plan: Given) -> Listed:
        """Whether a plan, or a receipt, is known to work or to fail, and the next rung of its ladder.

        ``exit_code`` is 0 known or likely to work, 1 known or predicted to fail, 3 unknown. Raises InputError.
        """
        from receipts.publish.preflight import page
        from receipts.questions.plan import parse_plan
        from receipts.questions.preflight import answered

        one = self.opened.get(plan) if isinstance(plan, str) else parsed(plan, parse_plan)
        known = answered(one, self.rulebook.lanes.of(one.receipt.run.lane), self.opened)
        document = known.as_data()
        return Listed(document, [document], lambda: page(one, known.answer, known.rung), known.answer.code)

    def frontier(self, *lanes: str) -> Listed:
        """The best valid result of every shape, by lane, beside the best that is merely stated.

        A row has lane, proven (true or false), receipt, label, shape, tokens_per_second_per_chip, mfu, peak_bytes.
        """
        from receipts.api.lists import frontier, frontier_page

        rows = frontier(self.opened, self.rulebook, lanes)
        return Listed(rows, rows, lambda: frontier_page(rows))

    def claims(self, *, status: str | None = None, superseded: bool = False) -> Listed:
        """The store's claims with their present verdicts; ``status`` supported, refuted, unproven or stale."""
        from receipts.api.lists import claims_as_data, claims_page, judged_claims

        document = claims_as_data(judged_claims(self.opened, self.rulebook, status=status, superseded=superseded))
        return Listed(document, document, lambda: claims_page(document))

    def judge_claims(self, document: bytes) -> list[dict[str, Any]]:
        """The verdicts on the claims of a ``claims.toml``, whose words name stored receipts; stores nothing.

        Raises InputError with every problem.
        """
        from receipts.api.lists import check_claims

        return check_claims(self.opened, self.rulebook, document, add=False)

    def add_claims(self, document: bytes) -> list[dict[str, Any]]:
        """Add the claims of a ``claims.toml``; gives the first verdict on each that is new.

        Raises InputError with every problem, NotFound, and ConflictError for a claim that differs from the stored one.
        """
        from receipts.api.lists import check_claims

        return check_claims(self.opened, self.rulebook, document, add=True)

    def one(self, item: Given) -> Parsed:
        """The receipt that a word or a document means. Raises NotFound and InputError."""
        return self.opened.get(item, repeated=True) if isinstance(item, str) else parsed(item)


def _named(item: Given) -> Parsed | str:
    # A text is never a path here: the server passes on what it is sent.
    return item if isinstance(item, str) else parsed(item)


def open(store: str | None = None, *, create: bool = False) -> Store:  # `receipts.open`, as in `gzip.open`
    """Open a store: a path or URL; None is ``RECEIPTS_STORE``, else the user's own.

    With ``create`` a store that does not exist is made. Raises UsageError for a URL of another kind, NoStore, and any
    other StoreError, which says what to do.
    """
    from receipts.store import open_store

    return Store(open_store(store, create=create))


def compare(a: Given, b: Given, **options: Any) -> Comparison:
    """B against A, from files, bytes, mappings or receipts, without a store: no other launches, no noise floor.

    ``options`` are those of `Store.compare`. Raises InputError and UsageError.
    """
    sides = [[parsed(item) for item in (side if isinstance(side, list) else [side])] for side in (a, b)]
    witnesses = [parsed(item) for item in options.pop("witnesses", ())]
    return compared(None, rulebook(), *sides, witnesses=witnesses, **options)
