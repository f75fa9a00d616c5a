"""Markdown line by line: paragraphs, headings and table rows, and their readable text.

Every character keeps its place in the file. Code and front matter are left out. Memory stays small whatever the file's
size: a block is never longer than `LONGEST` characters.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Literal

from receipts.plugins.lint.statement import NamedReceipt

# Stands for inline code, so that words on both sides of it stay apart.
CODE = "\ufffc"
IGNORE = re.compile(r"<!--\s*receipts:\s*ignore\b[:\s]*(?P<reason>.*?)\s*-->", re.DOTALL)
_LINKED = r"(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]"
_TARGET = r"(?i:receipt|claim):"
# The look-ahead is for speed: most characters begin no token.
_TOKEN = re.compile(
    r"(?=[`<!\[\\*_~$&hw])(?:"
    # A link in HTML, in reStructuredText and in LaTeX.
    rf"<a\s[^<>]*?href=[\"']?(?P<href>{_TARGET}[^\s\"'<>]+)[\"']?[^<>]*>(?P<html>.*?)</a>"
    rf"|`(?P<rst>[^`<>]+?)\s<(?P<role>{_TARGET}[^<>`\s]+)>`_{{1,2}}"
    rf"|\\href\{{(?P<url_of>{_TARGET}[^{{}}]+)\}}\{{(?P<tex>[^{{}}]*)\}}"
    r"|(?P<note>\[\^[^\]\s]+\])"
    r"|(?P<code>(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<comment><!--.*?-->)"
    r"|(?P<image>!\[[^\]]*\]\([^)]*\))"
    rf"|\[{_LINKED}(?:\((?P<target>[^()\s]*(?:\([^()]*\)[^()\s]*)*)(?:\s+\"[^\"]*\")?\)|\[(?P<name>[^\[\]]*)\])"
    r"|(?P<auto><(?:https?|receipt|claim|mailto):[^>\s]*>)"
    r"|(?P<tag></?[A-Za-z][^<>]{0,400}>)"
    r"|(?P<url>\b(?:https?://|www\.)[^\s)>\]]+)"
    r"|(?P<entity>\\times\b|&times;|&nbsp;|&minus;|&ndash;|&plus;|\\%|\\pm\b|&thinsp;|~(?=\\?%))"
    r"|(?P<escape>\\(?=[\\`*_{}\[\]()#+\-.!|$&~<>]))"
    r"|(?P<mark>\*{1,3}|~~|(?<!\w)_{1,2}(?=\S)|(?<=\S)_{1,2}(?!\w)|\$(?=[\d\\+−-])|(?<=[\d%])\$))",
    re.DOTALL,
)
# Groups of a link's text and target outside Markdown.
_FOREIGN = {"html": "href", "rst": "role", "tex": "url_of"}
_ENTITY = {
    "\\times": "×",
    "&times;": "×",
    "&nbsp;": " ",
    "&thinsp;": " ",
    "&minus;": "−",
    "&ndash;": "–",
    "&plus;": "+",
    "\\%": "%",
    "\\pm": "±",
    "~": " ",
}
_RECEIPTS = re.compile(r"^(?P<a>@?(?:[\w-]|\.(?!\.))+)(?:\.\.(?P<b>@?(?:[\w-]|\.(?!\.))+))?$")


@dataclass
class Text:
    """Readable text, made piece by piece. ``links`` are spans of it; offsets lead back to the raw text."""

    parts: list[str] = field(default_factory=list)
    length: int = 0
    starts: list[int] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    links: list[tuple[int, int, NamedReceipt]] = field(default_factory=list)
    ignores: list[tuple[int, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.parts)

    def add(self, piece: str, source: int) -> None:
        """Append a piece that is at an offset of the raw text."""
        if piece:
            self.starts.append(self.length)
            self.sources.append(source)
            self.parts.append(piece)
            self.length += len(piece)

    def source(self, offset: int) -> int:
        """The place of a character in the raw text."""
        index = bisect_right(self.starts, offset) - 1
        return self.sources[index] + offset - self.starts[index] if index >= 0 else 0


def read_inline(raw: str, definitions: dict[str, str], *, base: int = 0) -> Text:
    """The readable text of a paragraph. ``definitions`` are the file's link definitions that name receipts."""
    text = Text()
    _read_inline(raw, base, definitions, text)
    return text


def _read_inline(raw: str, base: int, definitions: dict[str, str], text: Text) -> None:
    position = 0
    for token in _TOKEN.finditer(raw):
        text.add(raw[position : token.start()].replace("\n", " "), base + position)
        _token(token, base, definitions, text)
        position = token.end()
    text.add(raw[position:].replace("\n", " "), base + position)


def _token(token: re.Match[str], base: int, definitions: dict[str, str], text: Text) -> None:
    at = base + token.start()
    if token["code"] or token["url"]:
        text.add(CODE, at)
    elif token["comment"]:
        reason = IGNORE.fullmatch(token["comment"])
        if reason:
            text.ignores.append((at, reason["reason"]))
    elif label := next((name for name in ("text", *_FOREIGN) if token[name] is not None), ""):
        start = text.length
        _read_inline(token[label], base + token.start(label), definitions, text)
        if label == "text":
            target = token["target"] or definitions.get((token["name"] or token["text"]).strip().lower(), "")
        else:
            target = token[_FOREIGN[label]]
        link = read_target(target)
        if link is not None:
            text.links.append((start, text.length, link))
    elif token["auto"]:
        link = read_target(token["auto"][1:-1])
        if link is not None:
            text.links.append((text.length, text.length, link))
        text.add(CODE, at)
    elif token["entity"]:
        text.add(_ENTITY[token["entity"]], at)
    elif token["tag"] and re.match(r"</?(?:br|td|th|tr|p|li|div)\b", token["tag"], re.IGNORECASE):
        text.add(" ", at)


def read_target(target: str) -> NamedReceipt | None:
    """What a link's target names: receipts, a claim, or nothing of ours. A target that cannot be read says why."""
    kind, separator, rest = target.partition(":")
    if not separator or kind.lower() not in ("receipt", "claim"):
        return None
    if kind.lower() == "claim":
        return (
            NamedReceipt(target, claim=rest)
            if rest
            else NamedReceipt(target, problem="it names no claim; write claim:ID")
        )
    match = _RECEIPTS.match(rest)
    if match is None:
        return NamedReceipt(target, problem="write receipt:ID, or receipt:BASELINE..CANDIDATE")
    return NamedReceipt(target, receipts=tuple(item for item in (match["a"], match["b"]) if item))


LONGEST = 20_000
_FENCE = re.compile(r"^[\s>]*(?:[-*+]\s+|\d+[.)]\s+)?(?P<fence>`{3,}|~{3,})")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(?:\d+(?:\.\d+)*[.)]?\s+(?=\D))?")
_ITEM = re.compile(r"^(?P<lead>[\s>]*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?)")
_QUOTE = re.compile(r"^\s{0,3}(?:>\s?)+")
_DELIMITER = re.compile(r"^[\s>]*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_UNDERLINE = re.compile(r"^\s{0,3}(?:=+|-+|~{4,}|\*\s*\*\s*\*[\s*]*|_{3,})\s*$")
_DEFINITION = re.compile(r"^\s{0,3}\[(?P<name>[^\]]+)\]:\s+<?(?P<target>\S+?)>?(?:\s|$)")
_RAW_OPEN = re.compile(r"^\s*<(?P<tag>pre|script|style|code|svg|textarea)\b", re.IGNORECASE)
_CELL = re.compile(r"(?:\\\||`[^`|]*`|[^|])*")
_INDENTED = re.compile(r"^(?: {4}|\t)")


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a row: its raw text, and the column of its first character, counted from 0."""

    raw: str
    column: int


@dataclass(slots=True)
class TextBlock:
    """A paragraph, a heading, or a row of a table.

    ``raw`` is the text of all its lines; ``lines`` gives, for each of them, the offset in ``raw``, the line's number
    in the file, and the column that its text begins at, from 0. A row has ``cells`` and its table's ``head``. Tables
    and numbered lists are counted; 0 where it is in none.
    """

    kind: Literal["prose", "heading", "row"]
    raw: str = ""
    lines: list[tuple[int, int, int]] = field(default_factory=list)
    cells: tuple[Cell, ...] = ()
    head: tuple[str, ...] = ()
    heading: str = ""
    ignored: str | None = None
    table: int = 0
    numbered: int = 0

    def add(self, text: str, number: int, column: int) -> None:
        """Append a line."""
        if self.raw:
            self.raw += "\n"
        self.lines.append((len(self.raw), number, column))
        self.raw += text

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column, from 1, of an offset in ``raw``."""
        start, number, column = self.lines[max(bisect_right(self.lines, offset, key=itemgetter(0)) - 1, 0)]
        return number, column + offset - start + 1


def definitions(lines: Iterable[str]) -> dict[str, str]:
    """Link definitions of a file that name receipts or claims: `[r1]: receipt:3f9c`."""
    targets = {}
    for line in lines:
        match = _DEFINITION.match(line) if "]: " in line else None
        if match and match["target"].lower().startswith(("receipt:", "claim:")):
            targets[match["name"].strip().lower()] = match["target"]
    return targets


class _Reader:
    """State between lines."""

    def __init__(self) -> None:
        self.fence = ""
        self.raw_tag = ""
        self.comment = False
        self.block: TextBlock | None = None
        self.heading = ""
        self.head: tuple[str, ...] = ()
        self.pending: tuple[str, int] | None = None
        self.pending_ignore: str | None = None
        self.table = 0
        self.table_ignored: str | None = None
        self.in_list = False
        self.numbered = 0
        self.lists = 0
        self.blank = True

    def close(self) -> Iterator[TextBlock]:
        """The paragraph that is open, if any."""
        if self.block is not None:
            block, self.block = self.block, None
            yield block

    def open(self, kind: Literal["prose", "heading", "row"]) -> TextBlock:
        """A new block below the last heading, with the ignore comment that stood before it."""
        ignored, self.pending_ignore = self.pending_ignore, None
        return TextBlock(kind, heading=self.heading, ignored=ignored)


def blocks(lines: Iterable[str]) -> Iterator[TextBlock]:
    """The blocks of a file, in order. Code, raw HTML, comments and front matter are no blocks."""
    reader = _Reader()
    marker = ""
    for number, whole in enumerate(lines, 1):
        line = whole.rstrip("\r\n")
        if number == 1 and line.strip() in ("---", "+++"):
            marker = line.strip()
            continue
        if marker:
            marker = "" if line.strip() in (marker, "...") else marker
            continue
        for start in range(0, max(len(line), 1), LONGEST):
            yield from _line(reader, line[start : start + LONGEST], number, start)
    if reader.pending is not None:
        yield from _prose(reader, *reader.pending)
    yield from reader.close()


def _line(reader: _Reader, line: str, number: int, column: int) -> Iterator[TextBlock]:
    pending, reader.pending = reader.pending, None
    if pending is not None:
        if _DELIMITER.match(line) and "-" in line and "|" in line:
            yield from reader.close()
            reader.head = tuple(cell.raw.strip() for cell in cells(pending[0]))
            reader.table += 1
            reader.table_ignored, reader.pending_ignore = reader.pending_ignore, None
            yield _row(reader, *pending, head=True)
            return
        yield from _prose(reader, *pending)
    if _skipped(reader, line):
        yield from reader.close()
        return
    if not line.strip():
        yield from reader.close()
        reader.head, reader.blank, reader.table_ignored = (), True, None
        return
    if reader.head:
        if "|" in line:
            yield _row(reader, line, number)
            return
        reader.head, reader.table_ignored = (), None
    if "|" in line and column == 0 and not _ITEM.match(line):
        reader.pending = (line, number)
        return
    yield from _prose(reader, line, number, column)


def _skipped(reader: _Reader, line: str) -> bool:
    """Whether the line is code, raw HTML or a comment of several lines; keeps track of where such a part ends."""
    fence = _FENCE.match(line)
    if reader.fence:
        if fence and fence["fence"].startswith(reader.fence) and not line.strip().strip("`~> "):
            reader.fence = ""
        return True
    if reader.raw_tag:
        if f"</{reader.raw_tag}" in line.lower():
            reader.raw_tag = ""
        return True
    if reader.comment:
        reader.comment = "-->" not in line
        return True
    if fence and not _underlines(reader, line):
        reader.fence = fence["fence"]
        return True
    raw = _RAW_OPEN.match(line)
    if raw:
        reader.raw_tag = "" if f"</{raw['tag']}" in line.lower() else raw["tag"].lower()
        return True
    if line.rfind("<!--") > line.rfind("-->"):
        reader.comment = True
        return line.lstrip().startswith("<!--")
    if _INDENTED.match(line) and reader.blank and not reader.in_list and line.strip():
        return True
    return bool(_DEFINITION.match(line))


def _underlines(reader: _Reader, line: str) -> bool:
    """Whether tildes are the line below a title, as reStructuredText has it, and begin no code."""
    title = reader.block.raw.rpartition("\n")[2] if reader.block is not None else ""
    return bool(title) and set(line.strip()) == {"~"} and len(line.strip()) >= max(len(title.strip()), 4)


def _prose(reader: _Reader, line: str, number: int, column: int = 0) -> Iterator[TextBlock]:
    alone = IGNORE.fullmatch(line.strip())
    if alone:
        yield from reader.close()
        reader.pending_ignore = alone["reason"]
        return
    heading = _HEADING.match(line)
    if heading and column == 0:
        yield from reader.close()
        reader.heading, reader.in_list, reader.blank = line[heading.end() :].strip("# "), False, True
        reader.numbered = 0
        block = reader.open("heading")
        block.heading = ""
        block.add(line[heading.end() :], number, heading.end())
        yield block
        return
    if _UNDERLINE.match(line):
        if reader.block is not None:
            reader.heading = reader.block.raw[-200:]
        yield from reader.close()
        return
    item = _ITEM.match(line) if column == 0 else None
    lead = item or (_QUOTE.match(line) if column == 0 else None)
    skip = lead.end() if lead else len(line) - len(line.lstrip()) if column == 0 else 0
    if item:
        _enter(reader, item["lead"])
    if item or (reader.block is not None and len(reader.block.raw) + len(line) > LONGEST):
        yield from reader.close()
        reader.in_list = reader.in_list or item is not None
    elif reader.blank and not line.startswith((" ", "\t")):
        reader.in_list, reader.numbered = False, 0
    if reader.block is None:
        reader.block = reader.open("prose")
        reader.block.numbered = reader.numbered
    reader.blank = False
    reader.block.add(line[skip:], number, column + skip)


def _enter(reader: _Reader, lead: str) -> None:
    """Count a numbered list at its first item."""
    if not any(sign.isdigit() for sign in lead):
        reader.numbered = 0
    elif not reader.numbered:
        reader.lists += 1
        reader.numbered = reader.lists


def cells(line: str) -> list[Cell]:
    """The cells of a row; a bar in inline code, or after a backslash, divides nothing."""
    row, position = [], 0
    while position <= len(line):
        match = _CELL.match(line, position)
        end = match.end() if match else position
        row.append(Cell(line[position:end], position))
        position = end + 1
    if row and not row[0].raw.strip(" >\t"):
        row = row[1:]
    if row and not row[-1].raw.strip():
        row = row[:-1]
    return row


def _row(reader: _Reader, line: str, number: int, *, head: bool = False) -> TextBlock:
    block = reader.open("row")
    block.cells, block.head, block.table = tuple(cells(line)), () if head else reader.head, reader.table
    block.ignored = block.ignored if block.ignored is not None else reader.table_ignored
    block.add(line, number, 0)
    return block
