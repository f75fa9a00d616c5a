"""Markdown as blocks of readable text, of which every character keeps its place in the file; markdown-it-py parses it.

Code, images and front matter are left out.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

from receipts.plugins.lint.statement import NamedReceipt

# Stands for inline code, so that words on both sides of it stay apart.
CODE: Final = "\ufffc"
IGNORE: Final = re.compile(r"<!--\s*receipts:\s*ignore\b[:\s]*(?P<reason>.*?)\s*-->", re.DOTALL)
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_RAW: Final = re.compile(r"\s*<(?:pre|script|style|svg|textarea|code)\b", re.IGNORECASE)
_BREAK: Final = re.compile(r"</?(?:br|td|th|tr|p|li|div)\b", re.IGNORECASE)
_HREF: Final = re.compile(r"<a\s[^<>]*?href=[\"']?((?:receipt|claim):[^\s\"'<>]+)", re.IGNORECASE)
_TARGET: Final = re.compile(r"\](?:\((?:[^()\\]|\\.|\([^()]*\))*\)|\[[^\]]*\])?")
# Signs of TeX and footnotes, which stand between a number and its unit, and addresses, which hold other numbers.
_SIGN: Final = re.compile(
    r"(?P<times>\\times\b\$?)|\[\^[^\]\s]+\]|\$(?=[\d\\+−-])|(?<=[\d%])\$|(?P<url>(?<![(<\"'=])\b(?:https?://|www\.)[^\s)>\]]+)"
)
_NOTHING: Final = "\u200b"  # stands for a sign that is left out, so that every place stays
_FRONT: Final = re.compile(r"(---|\+\+\+)[ \t]*\n.*?\n(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_RECEIPTS: Final = re.compile(r"^(?P<a>@?(?:[\w-]|\.(?!\.))+)(?:\.\.(?P<b>@?(?:[\w-]|\.(?!\.))+))?$")


@dataclass
class Text:
    """Readable text; ``places`` give the line and column, from 0, of the pieces that begin at an offset of it."""

    text: str = ""
    places: list[tuple[int, int, int]] = field(default_factory=lambda: [(0, 0, 0)])
    links: list[tuple[int, int, NamedReceipt]] = field(default_factory=list)
    ignores: list[tuple[int, int, str]] = field(default_factory=list)

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column, from 1, of a character."""
        start, line, column = self.places[bisect_right(self.places, (offset, 1 << 40)) - 1]
        return line + 1, column + offset - start + 1


@dataclass
class TextBlock:
    """A paragraph, a heading, or a row of a table, which has a text for each cell and its table's ``head``.

    Tables and numbered lists are counted; 0 where it is in none. ``ignored`` is the line and the reason of a comment
    before it.
    """

    kind: Literal["prose", "heading", "row"]
    texts: list[Text]
    heading: str = ""
    head: tuple[str, ...] = ()
    ignored: tuple[int, str] | None = None
    table: int = 0
    numbered: int = 0


def blocks(text: str) -> Iterator[TextBlock]:
    """The blocks of a page, in order."""
    front = _FRONT.match(text)
    if front:
        text = "\n" * front[0].count("\n") + text[front.end() :]
    text = _SIGN.sub(
        lambda sign: ("×" if sign["times"] else CODE if sign["url"] else "").ljust(len(sign[0]), _NOTHING),
        text.replace(_NOTHING, " "),
    )
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
    lines = text.split("\n")
    heading, head, cells, parent = "", tuple[str, ...](), list[Text](), ""
    tables, counted, lists = 0, 0, list[int]()
    ignored: tuple[int, str] | None = None
    for token in parser.parse(text):
        block = None
        if token.type == "tr_open":
            cells = []
        elif token.type == "tr_close":
            block = TextBlock("row", cells, heading, head, ignored, tables)
            head = head or tuple(cell.text for cell in cells)
        elif token.type == "table_open":
            tables, head = tables + 1, ()
        elif token.type == "table_close":
            ignored = None
        elif token.type == "ordered_list_open":
            counted += 1
            lists.append(counted)
        elif token.type == "ordered_list_close":
            lists.pop()
        elif token.type == "html_block" and (alone := IGNORE.fullmatch(token.content.strip())):
            ignored = (token.map or [0])[0] + 1, alone["reason"]
        elif token.type == "html_block" and not _RAW.match(token.content):
            (inline,) = parser.parseInline(_COMMENT.sub(lambda match: " " * len(match[0]), token.content))
            inline.map = token.map
            block = TextBlock("prose", [_read(inline, lines)], heading, ignored=ignored)
        elif token.type == "inline" and parent in ("th_open", "td_open"):
            cells.append(_read(token, lines, cells[-1] if cells else None))
        elif token.type == "inline":
            kind: Literal["prose", "heading"] = "heading" if parent == "heading_open" else "prose"
            block = TextBlock(kind, [_read(token, lines)], heading if kind == "prose" else "", ignored=ignored)
            block.numbered = lists[-1] if lists else 0
            heading = block.texts[0].text if kind == "heading" else heading
        if block is not None:
            yield block
            ignored = ignored if block.kind == "row" else None
        parent = token.type


def _read(token: Token, lines: list[str], before: Text | None = None) -> Text:
    """The readable text of an inline token. Its pieces are looked up in the source, behind those of the cell before."""
    source, first = token.content, (token.map or [0])[0]
    behind = before.places[-1][2] + len(before.text) - before.places[-1][0] if before else 0
    starts, offset = list[tuple[int, int, int]](), 0
    for number, line in enumerate(source.split("\n"), first):
        column = lines[number].find(line, behind) if number < len(lines) else -1
        starts.append((offset, number, column if column >= 0 else behind))
        offset += len(line) + 1
    text = Text(places=[starts[0]])
    position, opened = 0, list[tuple[int, NamedReceipt | None]]()

    def add(piece: str, at: int) -> None:
        start, number, column = starts[bisect_right(starts, (at, 1 << 40)) - 1]
        text.places.append((len(text.text), number, column + at - start))
        text.text += piece

    def close() -> None:
        start, link = opened.pop() if opened else (0, None)
        if link is not None:
            text.links.append((start, len(text.text), link))

    for child in token.children or ():
        raw = child.markup if child.type == "text_special" else "\n" if child.type == "softbreak" else child.content
        at = max(source.find(raw, position), position)
        position = at + len(raw)
        if child.type == "text":
            for part in re.finditer(rf"{_NOTHING}*([^{_NOTHING}]+)", raw):
                add(part[1], at + part.start(1))
        elif child.type == "link_open":
            opened.append((len(text.text), read_target(str(child.attrs.get("href", "")))))
        elif child.type == "link_close":
            close()
            target = _TARGET.match(source, source.find("]", position)) if child.markup != "autolink" else None
            position = target.end() if target else position
        elif child.type == "html_inline" and (reason := IGNORE.fullmatch(raw)):
            start, number, column = starts[bisect_right(starts, (at, 1 << 40)) - 1]
            text.ignores.append((number + 1, column + at - start + 1, reason["reason"]))
        elif child.type == "html_inline" and (href := _HREF.match(raw)):
            opened.append((len(text.text), read_target(href[1])))
        elif child.type == "html_inline" and raw.lower() == "</a>":
            close()
        elif child.type == "image":
            target = _TARGET.match(source, source.find("]", position))
            position = target.end() if target else position
            add(CODE, at)
        elif child.type == "code_inline":
            add(CODE, at)
        elif child.type in ("softbreak", "hardbreak") or (child.type == "html_inline" and _BREAK.match(raw)):
            add(" ", at)
        elif child.type == "text_special":
            add(child.content, at)
    return text


def read_target(target: str) -> NamedReceipt | None:
    """What a link's target names: receipts, a claim, or nothing of ours. A target that cannot be read says why."""
    kind, _, rest = target.partition(":")
    if kind.lower() == "claim":
        return NamedReceipt(target, claim=rest, problem="" if rest else "it names no claim; write claim:ID")
    if kind.lower() != "receipt":
        return None
    match = _RECEIPTS.match(rest)
    if match is None:
        return NamedReceipt(target, problem="write receipt:ID, or receipt:BASELINE..CANDIDATE")
    return NamedReceipt(target, receipts=tuple(item for item in match.groups() if item))
