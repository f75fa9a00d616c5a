"""An open store, as a program asks it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from receipts.api.answer import Answer
from receipts.api.comparison import Comparison
from receipts.api.question import every
from receipts.api.questions.capacity import ceiling, fit, preflight
from receipts.api.questions.check import verify
from receipts.api.questions.claims import claim_check, claims, frontier, impact
from receipts.api.questions.compare import compare as compare_question
from receipts.api.questions.compare import neighbours, noise
from receipts.api.questions.receipts import show
from receipts.api.receipt import Receipt, Receipts, parsed, rulebook, stored_receipt
from receipts.api.session import Session

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook
    from receipts.metrics import Launch
    from receipts.questions.comparisons import Floors
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
        asked = None if name.startswith("_") else every().get(name.replace("_", " "))
        if asked is None:
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        return asked.__get__(self)

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

    @property
    def session(self) -> Session:
        """What its questions are asked of."""
        return Session(self.opened, self.rulebook, self.floors)

    def get(self, word: str) -> Receipt:
        """The one receipt that a word names, with what the store knows of it. Raises NotFound."""
        return stored_receipt(self.session, word)

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
        return Receipts(self.session, list(self.opened.find(Filters(wanted, superseded, order, limit))))

    compare = compare_question
    neighbours = neighbours
    noise = noise
    show = show
    verify = verify
    preflight = preflight
    fit = fit
    ceiling = ceiling
    claims = claims
    claim_check = claim_check
    impact = impact

    def frontier(self, *lanes: str) -> Answer:
        """The best valid result of every shape, by lane, beside the best that is merely stated.

        A row has lane, proven (true or false), receipt, label, shape, tokens_per_second_per_chip, mfu, peak_bytes.
        """
        return frontier(self.session, lanes)

    def add_claims(self, document: bytes) -> list[dict[str, Any]]:
        """Add the claims of a ``claims.toml``; gives the first verdict on each that is new.

        Raises InputError with every problem, NotFound, and ConflictError for a claim that differs from the stored one.
        """
        from receipts.api.lists import add_claims

        return add_claims(self.opened, self.rulebook, document)

    def one(self, item: Given) -> Parsed:
        """The receipt that a word or a document means. Raises NotFound and InputError."""
        return self.opened.get(item, repeated=True) if isinstance(item, str) else parsed(item)


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
    read = [[parsed(item) for item in (side if isinstance(side, list) else [side])] for side in (a, b)]
    options["witnesses"] = [parsed(item) for item in options.get("witnesses", ())]
    return compare_question(Session(None, rulebook()), **compare_question.bound(read, options))
