"""``receipts help``, ``open`` and ``completion``: finding one's way, in the terminal, the browser and the shell."""

from __future__ import annotations

import click

from receipts.base.errors import UsageError
from receipts.cli.session import Answer, Session, verb
from receipts.publish.page import table_of

# What is wrong, the command, and what is left.
_WHICH = (
    ("the number is wrong, or was never run", 'receipts retract ID --reason "…"', "the receipt; it counts nowhere"),
    (
        "a better receipt of the same launch",
        'receipts submit NEW --supersede "…"',
        "both; the new one counts",
    ),
    (
        "it is right, and you do not ship it",
        'receipts decide ID drop --reason "…"',
        "the receipt; it counts, and the decision is shown with it",
    ),
    (
        "it holds a secret",
        'receipts purge ID --reason "…"',
        "its id, the reason and the time",
    ),
    (
        "a whole submit was a mistake",
        "receipts retract 'submitted>=TIME actor=NAME' --reason \"…\"",
        "the receipts; they count nowhere",
    ),
)


@verb("help", json=False)
@click.argument("words", nargs=-1, metavar="[all|which|COMMAND…]")
def help_(session: Session, words: tuple[str, ...]) -> Answer | int:
    """Show every command, which one withdraws what, or the help of one.

    Examples:
      receipts help all
      receipts help which
      receipts help compare
    """
    from receipts.cli.group import all_commands, group, run

    if words == ("which",):
        note = "a retraction is withdrawn with: receipts retract ID --withdraw; there is no way back from a purge"
        return Answer(None, table_of("", "what is wrong | command | what stays", _WHICH), notes=(note,))
    if words != ("all",):
        return run([*words, "--help"])
    formatter = click.Context(group, info_name="receipts", max_content_width=100).make_formatter()
    all_commands(formatter)
    return Answer(None, formatter.getvalue().strip("\n"))


@verb("open", json=False)
@click.argument("words", nargs=-1, metavar="[A [B]]")
def open_(session: Session, words: tuple[str, ...]) -> Answer:
    """Show a page in the browser: the frontier, a receipt, or the comparison of two.

    Examples:
      receipts open
      receipts open 3f9c
      receipts open before.json after.json

    With a server as the store it is the server's page; else it is written to a file of a temporary folder.
    """
    import tempfile
    import webbrowser
    from pathlib import Path
    from urllib.parse import urlencode

    from receipts.api.questions.claims import frontier
    from receipts.api.questions.compare import compare
    from receipts.api.questions.receipts import show
    from receipts.cli.asked import read_files
    from receipts.cli.session import several

    if len(words) > 2:
        raise UsageError('name a receipt, or two to compare; several launches of a side are one word: "label=base*"')
    if session.server is not None:
        if len(words) == 2:
            path = f"/compare?{urlencode({'a': words[0], 'b': words[1]})}"
        else:
            path = f"/runs/{words[0]}" if words else "/"
        place = f"{session.server.url.rstrip('/')}{path}"
    else:
        sides = [read_files(several(word, session)) for word in words]
        answer = (
            compare(session, *sides) if len(sides) == 2 else show(session, *sides[0]) if sides else frontier(session)
        )
        file = Path(tempfile.mkdtemp(prefix="receipts-")) / "page.html"
        file.write_text(answer.form("html", {}), encoding="utf-8")
        place = file.as_uri()
    webbrowser.open(place)
    return Answer(None, place)


@verb("completion", json=False)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(session: Session, shell: str) -> Answer:
    """Print shell completion for bash, zsh or fish.

    Examples:
      receipts completion bash >> ~/.bashrc
      receipts completion fish > ~/.config/fish/completions/receipts.fish

    It completes commands, options, metrics, rules and lanes, and ids and labels of the store.
    """
    from click.shell_completion import get_completion_class

    from receipts.cli.group import group

    completion_class = get_completion_class(shell)
    if completion_class is None:
        raise click.UsageError(f"there is no completion for {shell}")
    source = completion_class(group, {}, "receipts", "_RECEIPTS_COMPLETE").source()
    # A label has blanks: bash quotes what it takes for names of files alone.
    source = source.replace("COMPREPLY+=($value)", 'COMPREPLY+=("$value")\n            compopt -o filenames')
    return Answer(None, source)
