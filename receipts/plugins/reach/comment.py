"""``receipts comment``: comparisons on a pull request, in one comment that is edited and never repeated."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import click

from receipts.base import files
from receipts.base.errors import InputError, Problem, UsageError
from receipts.base.untrusted_text import parse_json
from receipts.cli.session import Answer, Session, verb
from receipts.plugins.reach.github import Repository, comment, quoted

MAX_FILE: Final = 64 << 20  # bytes of one comparison
MAX_AXES: Final = 8
MAX_REASONS: Final = 4
ANSWERS: Final = {"holds": "holds", "fails": "does not hold", "open": "is undecided"}
SIGNS: Final = {"green": "🟢", "yellow": "🟡", "red": "🔴"}


@verb("comment")
@click.argument("comparisons", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--pull", type=click.IntRange(1), metavar="N", help="The pull request.  [default: that of the job]")
@click.option("--repository", metavar="OWNER/NAME", help="[default: GITHUB_REPOSITORY]")
@click.option("--name", default="compare", show_default=True, metavar="NAME", help="One comment of each name.")
@click.option("--page", metavar="URL", help="The server whose pages are linked.")
@click.option("--always", is_flag=True, help="Begin a comment where nothing is wrong, too.")
@click.option("--print", "only_print", is_flag=True, help="Print the text, and ask nobody.")
@click.option("--badge", type=click.Path(path_type=Path), metavar="FILE", help="Also write a badge as SVG.")
def comment_command(
    session: Session,
    comparisons: Sequence[Path],
    pull: int | None,
    repository: str | None,
    name: str,
    page: str | None,
    always: bool,
    only_print: bool,
    badge: Path | None,
) -> Answer:
    """Put comparisons on a pull request of GitHub: answer, axes, interval, path, in one comment that is edited.

    Examples:
      receipts compare base.json pr.json --require not-slower --json > compare.json
      receipts comment compare.json
      receipts comment compare.json --print >> "$GITHUB_STEP_SUMMARY"
      receipts comment a.json b.json --page https://receipts.example.org --badge performance.svg

    Each FILE is what compare --json prints. Where all is well, no comment is begun, and one that is there is edited.
    GITHUB_TOKEN is a token that may write to pull requests. Exit codes: 0 done, 2 wrong call, input or token, 4
    GitHub does not answer.
    """
    read = [comparison(path) for path in comparisons]
    page = page or (session.server.url if session.server is not None else None)
    worst = max((color_of(item) for item in read), key=("green", "yellow", "red").index)
    text = "\n".join(line for item in read for line in (*lines(item, page), ""))
    if badge is not None:
        from receipts.plugins.reach.badge import svg

        files.write(badge, svg("performance", message_of(read), worst), over=True)
    quiet = worst == "green" and not always
    data: dict[str, Any] = {"wrong": worst != "green", "comment": None, "url": None}
    if only_print:
        return Answer({**data, "text": text}, text)
    place = repository or os.environ.get("GITHUB_REPOSITORY", "")
    written = comment(Repository(place, "--repository"), pull or pull_of_job(), name, text, quiet=quiet)
    if written is None:
        return Answer(data, "nothing is wrong: no comment is begun")
    return Answer({**data, "comment": written.what, "url": written.url}, f"comment {written.what}: {written.url}")


def comparison(path: Path) -> Mapping[str, Any]:
    """What ``compare --json`` wrote to a file. Raises InputError for anything else."""
    problem = Problem("$", "this is not what compare --json prints", "receipts compare A B --json > compare.json")
    try:
        data = parse_json(files.read_small(path, MAX_FILE))
        list(lines(data, None)), message_of([data])  # whatever it lacks is missed here
        return dict(data)
    except OSError as error:
        raise InputError(str(path), [Problem("$", f"it cannot be read: {error.strerror}", "check the path")]) from None
    except (ValueError, LookupError, TypeError, AttributeError, StopIteration, RuntimeError):
        raise InputError(str(path), [problem]) from None


def asked(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The result of the metric that was asked for."""
    return next(item for item in data["results"] if item["metric"] == data["metric"])


def color_of(data: Mapping[str, Any]) -> str:
    """*green* where nothing is wrong: the gate holds, or without one the comparison is accepted and nothing slower."""
    if (gate := data.get("gate")) is not None:
        return {"holds": "green", "fails": "red"}.get(gate["answer"], "yellow")
    if data["status"] == "rejected" or (data["status"] == "accepted" and data["effect"] == "slower"):
        return "red"
    return "green" if data["status"] == "accepted" else "yellow"


def message_of(read: Sequence[Mapping[str, Any]]) -> str:
    """What a badge says of comparisons: of one, the change; of several, how many pass."""
    from receipts.publish.readings import signed  # help needs no numbers

    if len(read) > 1:
        return f"{sum(color_of(item) == 'green' for item in read)} of {len(read)} pass"
    gate, change = read[0].get("gate"), signed(asked(read[0])["effect"]["ratio"])
    return f"{change}, {gate['require']} {ANSWERS[gate['answer']]}" if gate else f"{change}, {read[0]['status']}"


def lines(data: Mapping[str, Any], page: str | None) -> Iterator[str]:
    """One comparison as Markdown."""
    from receipts import metrics
    from receipts.publish.readings import ends, named, number, signed

    row, gate, metric = asked(data), data.get("gate"), metrics.get(data["metric"])
    effect = row["effect"]
    names = [f"{data[f'label_{side}'] or data[side][0][:12]}" for side in "ab"]
    words = {"rejected": "not comparable" if data["comparable"] == "no" else "rejected", "inconclusive": "undecided"}
    answer = f"{words.get(data['status'], data['effect'])}, {signed(effect['ratio'])} {data['metric']}"
    yield f"### {SIGNS[color_of(data)]} {quoted(names[1])} against {quoted(names[0])}: {answer}"
    yield ""
    if gate is not None:
        yield f"**{quoted(gate['require'])}** {ANSWERS[gate['answer']]}: {quoted(gate['why'])}"
        yield ""
    yield f"| {named(metric)} | A | B | change | 95 % interval |"
    yield "| --- | ---: | ---: | ---: | --- |"
    values = ("~" if row[side]["value"] is None else number(metric, row[side]["value"]) for side in "ab")
    columns = (effect["kind"], *values, signed(effect["ratio"]), ends(effect["low"], effect["high"]))
    yield f"| {' | '.join(columns)} |"
    yield ""
    for title, axes in (("Changed", data["difference"]["changed"]), ("Not stated", data["difference"]["unknown"])):
        shown = [quoted(item["axis"]) for item in axes[:MAX_AXES]]
        if shown:
            yield f"- **{title}**: {', '.join(shown)}{f' and {len(axes) - MAX_AXES} more' * (len(axes) > MAX_AXES)}"
    path = f"- **Path**: {data['path']}"
    yield path if data["path"] != "unwitnessed" else f"{path}: nothing shows on which path it ran"
    if data["status"] != "accepted":
        heavy = sorted((item for item in data["findings"] if item["level"] in "EI"), key=lambda item: item["level"])
        reasons = dict.fromkeys(
            f"{item['code']} {item['found']}: {item['do']}" for item in heavy if not item["unjudged"]
        )
        for reason in list(reasons)[:MAX_REASONS]:
            yield f"- {quoted(reason)}"
    if page is not None:
        yield f"- [Page]({_linked(page, data)})"


def _linked(page: str, data: Mapping[str, Any]) -> str:
    """The page of the comparison on a server. Raises UsageError."""
    if urlsplit(page).scheme not in ("http", "https") or re.search(r"[\s()<>]", page):
        raise UsageError(f"--page {page}: write the URL of the server, as https://receipts.example.org")
    query = [(side, ",".join(item[:16] for item in data[side][:20])) for side in "ab"]
    return f"{page.rstrip('/')}/compare?{urlencode([*query, ('metric', data['metric'])])}"


def pull_of_job() -> int:
    """The pull request that a job of GitHub runs for. Raises UsageError."""
    try:
        event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
        number = (event.get("pull_request") or event.get("issue") or event)["number"]
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        raise UsageError("this job is of no pull request; name one: --pull N, or only --print") from None
    return int(number)
