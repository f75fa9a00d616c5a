"""The group of commands, each imported when it is called, and the one place where errors become exit codes."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence

import click

from receipts.errors import ReceiptsError

# name → (module, one line for --help). The command object in the module is called `command`.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "submit": ("submit", "Check receipts and keep them in the store."),
    "ingest": ("ingest", "Put a run's logs, profiles and reports together into one receipt."),
    "merge": ("merge", "Merge the parts of many ranks into one receipt."),
    "recover": ("recover", "Make the receipt of a run that was killed, from its journal."),
    "check": ("check", "Check receipts without storing them."),
    "compare": ("compare", "Say what the difference between two numbers means."),
    "show": ("show", "Show one receipt, headed by the five answers."),
    "chips": ("chips", "Draw memory by physical chip, and what changed it."),
    "list": ("list_", "List receipts by any axis, lane or outcome."),
    "fit": ("fit", "Estimate what a launch holds on its fullest chip."),
    "neighbours": ("neighbours", "Show every receipt one axis away."),
    "bridge": ("bridge", "Show the chain of one-axis receipts between two."),
    "sweep": ("sweep", "Lay a grid of launches out as a table."),
    "noise": ("noise", "Show how far equal launches lie apart."),
    "pin": ("pin", "Name a receipt, such as @golden."),
    "repro": ("repro", "Print what it takes to run a receipt again."),
    "axes": ("axes", "List every leaf of the receipt with its role."),
    "lanes": ("lanes", "List the lanes, or show one."),
    "rules": ("rules", "List the rules, or print one rule's page."),
    "claim": ("claim", "Say of published sentences whether receipts carry them."),
    "lint": ("lint", "Find performance statements in Markdown and check their receipts."),
    "decide": ("decide", "Write down what was decided on a receipt, and why."),
    "impact": ("impact", "List what goes stale with a receipt."),
    "preflight": ("preflight", "Say whether a plan is known to work or to fail, and what to try."),
    "run": ("run", "Launch a plan, record every attempt, step down the ladder."),
    "ceiling": ("ceiling", "Show the largest shapes that a lane sustained, and where it ran out of memory."),
    "init": ("init", "Write a receipt skeleton for a lane."),
    "import": ("import_", "Take in a notebook's table, or another store's export."),
    "export": ("export", "Write the store as Parquet, JSON lines or CSV."),
    "report": ("report", "Write the weekly frontier report."),
    "retract": ("retract", "Withdraw a receipt without a successor."),
    "purge": ("purge", "Erase a receipt's bytes, leaving a tombstone."),
    "revalidate": ("revalidate", "Judge what is stored by the present rules, and say what flipped."),
    "flush": ("flush", "Store what was kept here while the server did not answer."),
    "audit": ("audit", "Hold every row against its digests and seals."),
    "backup": ("backup", "Write the whole store into one file."),
    "restore": ("restore", "Make a store of a backup."),
    "db": ("db", "Upgrade, check or reindex the store, or print its roles."),
    "completion": ("completion", "Print shell completion for bash, zsh or fish."),
}


class Commands(click.Group):
    """A group that knows its commands by name and imports one when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module = importlib.import_module(f"receipts.cli.{entry[0]}")
        found = module.command
        if not isinstance(found, click.Command):
            raise TypeError(f"receipts.cli.{entry[0]}.command is no command")
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, says) for name, (_, says) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
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

Exit codes: 0 it holds, 1 it does not, 2 the call or the input is wrong, 3 not enough to say, 4 the store failed."""


@click.command(
    cls=Commands,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--store", metavar="URL", envvar="RECEIPTS_STORE", help="Store: a file, sqlite:/// or postgresql+psycopg:// URL."
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
    """Receipts: where a training-performance number earns the right to be believed."""
    from receipts.cli.session import Session

    asked = ctx.get_parameter_source("store") is click.core.ParameterSource.COMMANDLINE
    ctx.obj = Session(store=store, config=config, asks_store=asked)


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
    except Exception as error:
        # Python would end with 1, which here says that something does not hold.
        import traceback

        from receipts.cli import lacking

        if isinstance(error, ModuleNotFoundError) and (told := lacking(error)):
            sys.stderr.write(told)
            return 2
        traceback.print_exc()
        sys.stderr.write("receipts: this is a defect of the program; report it with the lines above\n")
        return 4
    return result if isinstance(result, int) else 0
