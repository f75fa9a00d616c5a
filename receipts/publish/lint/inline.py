"""Markdown's inline form: a paragraph's readable text, with the place of every character in the file."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field

from receipts.publish.lint.statement import NamedReceipt

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


def read(raw: str, definitions: dict[str, str], *, base: int = 0) -> Text:
    """The readable text of a paragraph. ``definitions`` are the file's link definitions that name receipts."""
    text = Text()
    _read(raw, base, definitions, text)
    return text


def _read(raw: str, base: int, definitions: dict[str, str], text: Text) -> None:
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
        _read(token[label], base + token.start(label), definitions, text)
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
