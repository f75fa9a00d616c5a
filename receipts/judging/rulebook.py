"""The rulebook: the rules, lanes and studies in force, the built-in ones and the user's.

Rules are loaded by path, as Alembic loads its versions; nothing imports a rule. A rule that does not load is an error
(exit code 4), and never a pass. A lockstep study is a named set of axes that move together, with the constraint that
must hold.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from receipts.axes import Difference
from receipts.axes.catalogue import bookkeeping_file, checked_bookkeeping
from receipts.axes.lane import Lane, Lanes
from receipts.axes.replicates import Bounded
from receipts.base.environment import bundled_folder
from receipts.base.errors import NotFound, RuleError, near
from receipts.base.files import read_small
from receipts.base.untrusted_text import parse_toml
from receipts.judging.rule import DECLARED, Rule, RuleSubject, Topic
from receipts.judging.verdict import Finding, Level
from receipts.metrics import Launch
from receipts.receipt import Parsed

if TYPE_CHECKING:
    from receipts.axes.replicates import SettingsCache
    from receipts.base.environment import Config


_KEYS_OF_STUDY = frozenset({"title", "axes", "equal", "unchanged", "regimes"})


@dataclass(frozen=True, slots=True)
class Study:
    """One study. ``equal`` are products and quotients of leaf paths, the same on both sides.

    ``regimes`` are leaves of the measurement's regime that differ on purpose, with the values of A and of B.
    """

    name: str
    title: str
    axes: tuple[str, ...]
    equal: tuple[str, ...]
    unchanged: tuple[str, ...]
    regimes: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def broken_by(self, difference: Difference, a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[str, ...]:
        """Why the study does not hold for a pair, in sentences; empty if it holds."""
        moved = [axis for axis in self.unchanged if axis in difference.axes]
        reasons = [f"{axis} changed, and {self.name} keeps it" for axis in moved]
        for expression in self.equal:
            va, vb = value_of(expression, a), value_of(expression, b)
            if va is None or vb is None:
                reasons.append(f"{expression} is not stated on both sides")
            elif va != vb:
                reasons.append(f"{expression} is {_text(va)} on A and {_text(vb)} on B")
        for path, wanted in self.regimes.items():
            for side, value, stated in zip("AB", wanted, (a.get(path), b.get(path)), strict=True):
                if stated != value:
                    reasons.append(f"{path} is {stated or 'not stated'} on {side}, and {self.name} compares {value}")
        return tuple(reasons)


def value_of(expression: str, stated: Mapping[str, Any]) -> Fraction | None:
    """A product and quotient of leaf paths, exactly; None if a leaf is unstated, no number, or divides by 0."""
    words = expression.split()
    result: Fraction | None = None
    operator = "*"
    for word in words:
        if word in ("*", "/"):
            operator = word
            continue
        value = stated.get(word)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if operator == "/" and value == 0:
            return None
        number = Fraction(value)
        result = number if result is None else result * number if operator == "*" else result / number
    return result


def _text(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"{float(value):.6g}"


@dataclass(frozen=True, slots=True)
class Studies:
    """The studies of this installation, by name."""

    by_name: Mapping[str, Study]

    def get(self, name: str) -> Study:
        """The study of that name. Raises NotFound."""
        if name not in self.by_name:
            raise NotFound(
                f"there is no study {name!r}; known: {', '.join(sorted(self.by_name))}{near(name, self.by_name)}"
            )
        return self.by_name[name]


def load_studies(files: Iterable[Path]) -> Studies:
    """Read ``studies.toml`` files. Raises RuleError that names the file and the key."""
    studies: dict[str, Study] = {}
    for path in files:
        try:
            table = parse_toml(read_small(path))
        except (OSError, ValueError) as error:
            raise RuleError(f"studies {path}: {error}; mend the file") from None
        for name, entry in table.items():
            if (
                not isinstance(entry, dict)
                or set(entry) - _KEYS_OF_STUDY
                or not {"title", "axes", "equal"} <= set(entry)
            ):
                raise RuleError(f"study {name} in {path}: state title, axes, equal and, if any, unchanged and regimes")
            if name in studies:
                raise RuleError(f"study {name} is defined twice; rename one of them")
            studies[name] = Study(
                name,
                entry["title"],
                tuple(entry["axes"]),
                tuple(entry["equal"]),
                tuple(entry.get("unchanged", ())),
                {path: (values[0], values[1]) for path, values in entry.get("regimes", {}).items()},
            )
    return Studies(studies)


MAX_JUDGED: Final = 250  # configurations whose findings a rule set holds
_CODE = re.compile(r"^[A-Z]\d{3}$")
_NAME = re.compile(r"^[a-z][a-z0-9_]*$")


@dataclass(frozen=True)
class Rulebook:
    """Everything that verdicts depend on beside the receipts. Read on first use."""

    extra: tuple[Path, ...] = ()
    bookkeeping: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of receipts.toml
    prices: Mapping[str, float] = field(default_factory=dict)  # of a chip-hour by accelerator, and of a kilowatt-hour

    @property
    def folders(self) -> tuple[Path, ...]:
        """The built-in validators folder, then the user's."""
        return (bundled_folder("validators"), *self.extra)

    @cached_property
    def lanes(self) -> Lanes:
        """Lanes."""
        return Lanes(self.folders, self.bookkeeping, self.prices)

    @cached_property
    def session(self) -> SettingsCache:
        """What launches that are read under this rulebook share."""
        from receipts.axes.replicates import SettingsCache

        return SettingsCache()

    def launch(self, parsed: Parsed) -> Launch:
        """A receipt under its lane, with the settings that it shares with others of its configuration."""
        return Launch(parsed, self.lanes.of(parsed.receipt.run.lane), self.session.settings(parsed))

    @cached_property
    def rules(self) -> RuleSet:
        """Rules, with the digest over rules, lanes and studies."""
        return load_rules(self.folders, [*self.lanes.files(), *self.study_files(), bookkeeping_file()], self.added)

    @property
    def added(self) -> bytes:
        """What a receipts.toml adds to the bookkeeping, as the digest of the rules takes it; empty if nothing."""
        return repr(sorted(self.bookkeeping.items())).encode() if self.bookkeeping else b""

    @cached_property
    def studies(self) -> Studies:
        """Studies."""
        return load_studies(self.study_files())

    def of_rules(self, codes: Collection[str]) -> Rulebook:
        """The same with these rules alone."""
        narrowed = Rulebook(self.extra, self.bookkeeping, self.prices)
        rules = RuleSet(tuple(item for item in self.rules.rules if item.code in codes), self.rules.digest)
        vars(narrowed).update(lanes=self.lanes, studies=self.studies, rules=rules)
        return narrowed

    def study_files(self) -> list[Path]:
        """Files of studies, the built-in one first."""
        return [path for place in self.folders if (path := place / "studies.toml").is_file()]


@dataclass(frozen=True)
class RuleSet:
    """Rules in the order of their codes, with the digest that every verdict carries."""

    rules: tuple[Rule, ...]
    digest: str

    @cached_property
    def _by_subject(self) -> dict[str, tuple[Rule, ...]]:
        subjects = dict.fromkeys(item.subject for item in self.rules)
        return {name: tuple(item for item in self.rules if item.subject == name) for name in subjects}

    def on(self, subject: RuleSubject) -> tuple[Rule, ...]:
        """Rules on one kind of subject."""
        return self._by_subject.get(subject, ())

    @cached_property
    def findings_of_configuration(self) -> Bounded[bytes, tuple[Lane, tuple[Finding, ...]]]:
        """What the rules on the configuration find, by what it states; see `receipts.judging.judge`."""
        return Bounded(MAX_JUDGED)

    @cached_property
    def of_configuration(self) -> tuple[Rule, ...]:
        """Rules on a receipt that are shown its configuration alone."""
        return tuple(item for item in self.on("receipt") if item.of_configuration)

    @cached_property
    def of_launch(self) -> tuple[Rule, ...]:
        """Rules on a receipt that are shown all of it."""
        return tuple(item for item in self.on("receipt") if not item.of_configuration)

    @cached_property
    def _by_topic(self) -> dict[Topic, tuple[str, ...]]:
        return {topic: tuple(item.code for item in self.rules if item.about is topic) for topic in Topic}

    def about(self, topic: Topic) -> tuple[str, ...]:
        """Codes of the rules on a topic, in their order."""
        return self._by_topic[topic]

    def sparing(self, metric: str) -> tuple[str, ...]:
        """Codes of the rules whose offense does not spoil a metric of their taints."""
        return tuple(item.code for item in self.rules if metric in item.spares)

    @cached_property
    def _named(self) -> dict[str, Rule]:
        return {name: item for item in reversed(self.rules) for name in (item.code, item.name)}

    def get(self, code: str) -> Rule:
        """The rule of a code or name. Raises NotFound."""
        rule = self._named.get(code.upper()) or self._named.get(code.lower())
        if rule is None:
            raise NotFound(f"there is no rule {code!r}; see: receipts rules{near(code, self._named)}")
        return rule


def load_file(path: Path) -> Rule:
    """Load one rule by path. Raises RuleError naming the file and what it lacks."""
    loader = SourceFileLoader(f"receipts_rule_{path.stem}", str(path))
    module = ModuleType(loader.name)
    module.__file__ = str(path)
    try:
        loader.exec_module(module)
    except Exception as error:  # a rule is somebody's file: whatever it raises is that file's fault, and said so
        raise RuleError(f"rule {path.name} does not load: {type(error).__name__}: {error}") from error
    declared = [value for value in vars(module).values() if hasattr(value, DECLARED)]
    if len(declared) != 1:
        raise RuleError(f"rule {path.name}: it declares {len(declared)} rules; a file holds exactly one")
    rule: Rule = getattr(declared[0], DECLARED)
    page = (module.__doc__ or "").strip()
    if not _CODE.match(rule.code) or not _NAME.match(rule.name):
        raise RuleError(f"rule {path.name}: {rule.code} {rule.name} is not a code like R101 with a snake_case name")
    if (rule.code[0] == "C") is not (rule.subject == "pair"):
        raise RuleError(f"rule {path.name}: rules on a pair, and they alone, have codes that begin with C")
    if rule.asks_store and rule.level is not Level.SHOWN:
        raise RuleError(f"rule {path.name}: a rule that asks the store is only shown; give it level W")
    if not page:
        raise RuleError(f"rule {path.name}: it has no page; write its docstring")
    return Rule(**{**vars(rule), "page": page, "path": path})


def load_rules(folders: Iterable[Path], data: Iterable[Path] = (), added: bytes = b"") -> RuleSet:
    """Load every rule below ``folders`` (each holds ``rules/``), and digest them with the ``data`` files.

    The digest covers the rules' code without their pages, lanes, studies and bookkeeping: a reworded page changes no
    verdict. ``added`` is what a receipts.toml adds to that.
    """
    rules: dict[str, Rule] = {}
    digest = hashlib.sha256()
    for place in folders:
        for path in sorted((place / "rules").glob("*.py")):
            rule = load_file(path)
            if rule.code in rules:
                other = rules[rule.code].path
                raise RuleError(f"rule {rule.code} is in both {other} and {path}; give one another code")
            rules[rule.code] = rule
            digest.update(f"{path.name}\0".encode() + _PAGE.sub(b"", path.read_bytes(), count=1) + b"\0")
    for path in data:
        digest.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    digest.update(b"receipts.toml\0" + added + b"\0" if added else b"")
    ordered = tuple(rules[code] for code in sorted(rules))
    return RuleSet(ordered, digest.hexdigest())


# A rule's leading docstring, to the first three quotes; in runs, since every start reads every rule.
_PAGE = re.compile(rb'\A\s*[rR]?"""(?:[^"\\]++|\\.|"(?!""))*+"""', re.DOTALL)


def builtin() -> Rulebook:
    """The rulebook as shipped."""
    return Rulebook()


def configured(config: Config) -> Rulebook:
    """The rulebook with what a receipts.toml adds. Raises RuleError for bookkeeping that would leave out a setting."""
    return Rulebook(config.validators, checked_bookkeeping(config.bookkeeping, "receipts.toml"), config.prices)
