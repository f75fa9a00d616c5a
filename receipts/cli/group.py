"""The group of commands, each imported when it is called, and the one place where errors become exit codes."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import click

from receipts.base.errors import ReceiptsError
from receipts.base.plugins import plugins

# What --help shows, of those that are there: the rest is under `receipts help all`.
_FIRST = ("record", "submit", "compare", "report", "show", "list", "why", "claim", "ingest", "serve")
# Words behind a verb that are a verb of their own, too: one question has one verb, and its old names go on.
_WORDS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("audit", "verify"): ("verify",),
    ("audit", "evidence"): ("evidence",),
    ("audit", "schema"): ("db", "check"),
    ("fit", "preflight"): ("preflight",),
    ("fit", "ceiling"): ("ceiling",),
    ("watch", "incident"): ("incident",),
}
# The kernel's: section of `help all` → name → (module of this package, one line). Plugins add theirs.
_SECTIONS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Make and store receipts": {
        "ingest": ("ingest", "Make a receipt from the logs, profiles and reports of one run."),
        "merge": ("ingest", "Merge the parts of many ranks into one receipt."),
        "recover": ("ingest", "Make the receipt of a run that was killed, from its journal."),
        "init": ("ingest", "Write a receipt or plan template for a lane."),
        "check": ("questions.check", "Check receipts without storing them."),
        "submit": ("submit", "Check receipts and store them."),
    },
    "Compare and explain": {
        "compare": ("questions.compare", "Compare two runs, or two groups of launches."),
        "neighbours": ("questions.compare", "Show every stored receipt that differs in one axis."),
        "noise": ("questions.compare", "Show how much identical launches vary."),
        "list": ("questions.receipts", "List receipts by any axis, lane or outcome."),
        "frontier": ("questions.claims", "List the best results of each lane, proven and reported."),
        "show": ("questions.receipts", "Show one receipt: what ran, where, and how fast."),
        "repro": ("questions.receipts", "Print a script that repeats a receipt's run."),
    },
    "Plan and launch": {
        "fit": ("questions.capacity", "Estimate a launch's memory on the chip that uses most."),
        "preflight": ("questions.capacity", "Say whether a plan is known to work, and what to try if not."),
        "ceiling": ("questions.capacity", "Show the largest shapes that a lane sustained."),
    },
    "Watch": {},
    "Publish": {
        "report": ("report", "Write a report on a week, a lane, a comparison or a claim."),
        "claim": ("claim", "Check published claims against their receipts."),
        "decide": ("decisions", "Record a decision about a receipt, and the reason."),
        "impact": ("questions.claims", "List the claims and documents that depend on a receipt."),
    },
    "Serve a team": {},
    "Sign and prove": {},
    "Rules, lanes and axes": {
        "rules": ("questions.rules", "List the rules, or print one rule's page."),
        "lanes": ("questions.rules", "List the lanes, or show one."),
        "axes": ("questions.rules", "List every field of a receipt and its role."),
    },
    "Maintain the store": {
        "pin": ("decisions", "Give a receipt a name, for example @golden."),
        "retract": ("decisions", "Withdraw a receipt; it stays in the store, with the reason."),
        "purge": ("decisions", "Erase a receipt for good, for example one that holds a secret."),
        "revalidate": ("audit", "Judge stored receipts again under the current rules."),
        "flush": ("submit", "Store documents that were kept while the store was away or full."),
        "audit": ("audit", "Verify every row against its digests and seals."),
        "verify": ("questions.check", "Read the evidence of receipts again."),
        "evidence": ("audit", "List, get or collect the files of evidence that the store keeps."),
        "backup": ("db", "Write the whole store to one file."),
        "restore": ("db", "Make a store from a backup."),
        "db": ("db", "Upgrade, check or reindex the store, or print its roles."),
    },
    "Shell": {
        "help": ("help", "Show every command, or which one withdraws what."),
        "open": ("help", "Show a page in the browser: the store, a receipt or a comparison."),
        "completion": ("help", "Print shell completion for bash, zsh or fish."),
    },
}


def _module(name: str) -> str:
    return f"receipts.api.{name}" if name.startswith("questions.") else f"receipts.cli.{name}"


class Entry(NamedTuple):
    """A command's module, and its line in ``--help``."""

    module: str
    help: str


@cache
def sections() -> Mapping[str, Mapping[str, Entry]]:
    """Section of ``--help`` → name → entry, with the commands of plugins in their places."""
    known = {
        title: {name: Entry(_module(module), text) for name, (module, text) in entries.items()}
        for title, entries in _SECTIONS.items()
    }
    for package, plugin in plugins().items():
        for name, added in plugin.verbs.items():
            own = (name, Entry(f"{package}.{added.module}", added.help))
            entries = list(known.get(added.section, {}).items())
            names = [other for other, _ in entries]
            # Behind another, first where that is empty, and else last.
            place = 0 if added.after == "" else names.index(added.after) + 1 if added.after in names else len(names)
            known[added.section] = dict([*entries[:place], own, *entries[place:]])
    return known


def commands() -> Mapping[str, Entry]:
    """Every command by its name, in the order of `sections`."""
    return {name: entry for part in sections().values() for name, entry in part.items()}


class Commands(click.Group):
    """A group that knows its commands by name and imports one when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of `sections`."""
        return list(commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now; None where there is none. The kernel's come first."""
        kernel = (entries[cmd_name][0] for entries in _SECTIONS.values() if cmd_name in entries)
        module = next(map(_module, kernel), None)
        if module is None and cmd_name in commands():
            module = commands()[cmd_name].module
        if module is None:
            return None
        known = vars(importlib.import_module(module)).values()
        verb = next((item for item in known if isinstance(item, click.Command) and item.name == cmd_name), None)
        if verb is not None:
            return verb
        from receipts.api.question import Question
        from receipts.cli.asked import command

        return command(next(item for item in known if isinstance(item, Question) and item.name == cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands of every day, and how to see the others."""
        known = commands()
        with formatter.section("Commands"):
            formatter.write_dl([(name, known[name].help) for name in _FIRST if name in known])
        with formatter.section("More"):
            formatter.write_dl(
                [
                    ("receipts help all", f"All {len(known)} commands, by what they are for."),
                    ("receipts help which", "Which one when: retract, purge, drop or supersede."),
                    ("receipts COMMAND -h", "What a command takes, with examples."),
                ]
            )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, but a mistyped name is answered with the one near it."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            import difflib

            close = difflib.get_close_matches(args[0], commands(), n=1)
            hint = f" Did you mean {close[0]}?" if close else ""
            ctx.fail(f"There is no command {args[0]!r}.{hint} See: receipts help all")


def all_commands(formatter: click.HelpFormatter) -> None:
    """Write one list a section, all with a first column of one width; a verb of another's question below that one."""
    under = {words[0]: f"{verb} {word}" for (verb, word), words in _WORDS.items() if len(words) == 1}
    size = max(len(under.get(name, name)) for name in commands())
    for title, entries in sections().items():
        if entries:
            with formatter.section(title):
                formatter.write_dl([(under.get(name, name).ljust(size), one.help) for name, one in entries.items()])


EPILOG = """\b
Examples:
  receipts submit run.json
  receipts compare before.json after.json
  receipts report weekly --out report

Exit codes: 0 yes, 1 no, 2 wrong call or input, 3 undecided, 4 the store failed."""


@click.command(
    cls=Commands,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--store",
    metavar="URL",
    envvar="RECEIPTS_STORE",
    help="Store: a file, a sqlite:/// or postgresql+psycopg:// URL, or the https:// URL of a server.",
)
@click.option(
    "--config",
    metavar="FILE",
    envvar="RECEIPTS_CONFIG",
    help="A receipts.toml with lanes, rules and a store; without it the next one upward from here.",
)
@click.option(
    "--version",
    "-V",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    help="Print the version.",
    callback=lambda c, p, v: None,
)
@click.pass_context
def group(ctx: click.Context, store: str | None, config: str | None) -> None:
    """Receipts: record training runs, and check what is claimed about their performance."""
    from receipts.cli.session import Session

    named = ctx.get_parameter_source("store") is click.core.ParameterSource.COMMANDLINE
    ctx.obj = Session(store=store, config=config, asks_store=named)
    ctx.call_on_close(ctx.obj.close)


GLOBAL = ("--store", "--config")


def global_first(words: Sequence[str]) -> list[str]:
    """The words with ``--store`` and ``--config`` in front, wherever they stood, and one verb for two of `_WORDS`."""
    first: list[str] = []
    rest: list[str] = []
    waiting = iter(words)
    for word in waiting:
        if word == "--":
            rest += [word, *waiting]
        elif word in GLOBAL:
            first += [word, *(value for value in [next(waiting, None)] if value is not None)]
        elif word.startswith(tuple(f"{name}=" for name in GLOBAL)):
            first.append(word)
        else:
            rest.append(word)
    named = _WORDS.get((rest[0], rest[1])) if len(rest) > 1 and not os.path.exists(rest[1]) else None
    return first + ([*named, *rest[2:]] if named is not None else rest)


def run(words: Sequence[str]) -> int:
    """Call the group, and turn what it raises into a message on standard error and an exit code."""
    from receipts.cli import output

    stream = sys.stdout
    try:
        result = group.main(args=global_first(words), prog_name="receipts", standalone_mode=False)
        # Here, where a reader that went away is still understood, and not while the interpreter ends.
        sys.stdout.flush()
    except SystemExit:
        # click ends the program itself: after completing a word, and where the reader went away, as `head` does. Then
        # it has put a stream of its own in place, and nobody is left to tell.
        if sys.stdout is stream:
            raise
        return 0
    except click.ClickException as error:
        error.show()
        return 2
    except click.Abort:
        sys.stderr.write("stopped\n")
        return 130
    except ReceiptsError as error:
        output.refuse(error)
        return error.exit_code
    except BrokenPipeError:
        # The reader went away, as `head` does: nobody is left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        return 130
    except OSError as error:
        from receipts.base.files import OF_A_NAME, OF_THE_MACHINE

        if error.errno in OF_A_NAME:
            sys.stderr.write(f"receipts: {str(error.filename)[:200]}: {error.strerror}; check the path\n")
            return 2
        if error.errno not in OF_THE_MACHINE:
            return _defect()
        # What is left to print would fail again while the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        place = f"{error.filename}: " if error.filename else "the output: "
        sys.stderr.write(f"receipts: {place}{error.strerror}; make room, and do it again\n")
        return 4
    except Exception as error:
        # Python would end with 1, which here says that something does not hold.
        from receipts.cli import lacking

        if isinstance(error, ModuleNotFoundError) and (explanation := lacking(error)):
            sys.stderr.write(explanation)
            return 2
        return _defect()
    return result if isinstance(result, int) else 0


def _defect() -> int:
    import traceback

    traceback.print_exc()
    sys.stderr.write("receipts: this is a defect of the program; report it with the lines above\n")
    return 4
