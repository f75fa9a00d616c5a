"""The group of commands, each imported when it is called, and the one place where errors become exit codes."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence

import click

from receipts.base.errors import ReceiptsError

# Section of --help → name → (module, one line).
SECTIONS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Make and store receipts": {
        "ingest": ("ingest", "Make a receipt from the logs, profiles and reports of one run."),
        "merge": ("merge", "Merge the parts of many ranks into one receipt."),
        "recover": ("recover", "Make the receipt of a run that was killed, from its journal."),
        "init": ("init", "Write a receipt or plan template for a lane."),
        "check": ("check", "Check receipts without storing them."),
        "submit": ("submit", "Check receipts and store them."),
    },
    "Compare and explain": {
        "compare": ("compare", "Compare two runs, or two groups of launches."),
        "neighbours": ("neighbours", "Show every stored receipt that differs in one axis."),
        "bridge": ("bridge", "Split a gain into a chain of one-axis comparisons."),
        "bisect": ("bisect", "Find the axes that made a configuration worse."),
        "sweep": ("sweep", "Show a grid of launches as a table, each compared with a base."),
        "history": ("history", "Show a line over time, and where its level changed."),
        "noise": ("noise", "Show how much identical launches vary."),
        "list": ("list_", "List receipts by any axis, lane or outcome."),
        "show": ("show", "Show one receipt: what ran, where, and how fast."),
        "chips": ("chips", "Draw memory by physical chip, or how it changed."),
        "repro": ("repro", "Print a script that repeats a receipt's run."),
    },
    "Plan and launch": {
        "plan": ("plan", "Plan the launches that decide, and read what they say."),
        "preflight": ("preflight", "Say whether a plan is known to work, and what to try if not."),
        "fit": ("fit", "Estimate a launch's memory on the chip that uses most."),
        "run": ("run", "Launch a plan; if memory runs out, launch a smaller one."),
        "ceiling": ("ceiling", "Show the largest shapes that a lane sustained."),
    },
    "Watch": {
        "watch": ("watch", "Open an incident where a line became slower; close it where it recovered."),
        "incident": ("watch", "List incidents, or close one."),
    },
    "Publish": {
        "report": ("report", "Write a report on a week, a lane, a comparison or a claim."),
        "claim": ("claim", "Check published claims against their receipts."),
        "lint": ("lint", "Check the performance statements in Markdown files."),
        "decide": ("decide", "Record a decision about a receipt, and the reason."),
        "impact": ("impact", "List the claims and documents that depend on a receipt."),
    },
    "Serve a team": {
        "serve": ("serve", "Serve the store over HTTP, with pages."),
        "token": ("token", "Create, list and revoke tokens for the server."),
        "mcp": ("serve", "Serve the store's questions to an agent, read-only."),
    },
    "Sign and prove": {
        "key": ("key", "Make keys, and say whose signatures the store trusts."),
        "attest": ("attest", "Sign a verdict as a statement that other tools can check."),
        "bundle": ("attest", "Pack a verdict with all that a stranger checks it by."),
    },
    "Rules, lanes and axes": {
        "rules": ("rules", "List the rules, or print one rule's page."),
        "lanes": ("rules", "List the lanes, or show one."),
        "axes": ("rules", "List every field of a receipt and its role."),
    },
    "Maintain the store": {
        "pin": ("pin", "Give a receipt a name, for example @golden."),
        "retract": ("retract", "Withdraw a receipt; it stays in the store, with the reason."),
        "purge": ("retract", "Erase a receipt for good, for example one that holds a secret."),
        "revalidate": ("revalidate", "Judge stored receipts again under the current rules."),
        "flush": ("flush", "Store documents that were kept while the server was down."),
        "verify": ("verify", "Read the evidence of receipts again."),
        "evidence": ("evidence", "List, get or collect the files of evidence that the store keeps."),
        "audit": ("audit", "Verify every row against its digests and seals."),
        "import": ("import_", "Import a table of runs, or another store's export."),
        "export": ("export", "Write the store as Parquet, JSON lines or CSV."),
        "backup": ("backup", "Write the whole store to one file."),
        "restore": ("backup", "Make a store from a backup."),
        "db": ("db", "Upgrade, check or reindex the store, or print its roles."),
    },
    "Shell": {
        "completion": ("completion", "Print shell completion for bash, zsh or fish."),
    },
}
COMMANDS: Mapping[str, tuple[str, str]] = {name: entry for part in SECTIONS.values() for name, entry in part.items()}


class Commands(click.Group):
    """A group that knows its commands by name and imports one when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of `SECTIONS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now; None where there is none."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        known = vars(importlib.import_module(f"receipts.cli.{entry[0]}")).values()
        return next(item for item in known if isinstance(item, click.Command) and item.name == cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one list a section, all with a first column of one width."""
        size = max(map(len, COMMANDS))
        for title, entries in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(size), help_text) for name, (_, help_text) in entries.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, but a mistyped name is answered with the one near it."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            import difflib

            close = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {close[0]}?" if close else ""
            ctx.fail(f"There is no command {args[0]!r}.{hint} See: receipts --help")


EPILOG = """\b
Examples:
  receipts submit run.json
  receipts compare 3f9c 81aa
  receipts compare before.json after.json --metric step_seconds
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
    "--config", metavar="FILE", envvar="RECEIPTS_CONFIG", help="A receipts.toml that adds lanes, rules and templates."
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
    """The words with ``--store`` and ``--config`` in front: people write them after the command as well."""
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
    return first + rest


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
