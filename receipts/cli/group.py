"""The group of commands, each imported when it is called, and the one place where errors become exit codes."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence

import click

from receipts.base.errors import ReceiptsError

# Section of --help → name → (module, one line). The command object in the module is called `command`.
SECTIONS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Make and keep receipts": {
        "ingest": ("ingest", "Make one receipt from a run's logs, profiles and reports."),
        "merge": ("merge", "Merge the parts of many ranks into one receipt."),
        "recover": ("recover", "Make the receipt of a run that was killed, from its journal."),
        "init": ("init", "Write an empty receipt or plan for a lane, to be filled in."),
        "check": ("check", "Check receipts without storing them."),
        "submit": ("submit", "Check receipts and store them."),
    },
    "Compare and explain": {
        "compare": ("compare", "Say what the difference between two runs means."),
        "neighbours": ("neighbours", "Show every stored receipt that differs in one axis."),
        "bridge": ("bridge", "Explain a whole gain by a chain of one-axis comparisons."),
        "sweep": ("sweep", "Show the launches of a grid as a table, each against a base."),
        "noise": ("noise", "Show how much equal launches differ."),
        "list": ("list_", "List receipts by any axis, lane or outcome."),
        "show": ("show", "Show one receipt: what ran, where, on which path, how fast."),
        "chips": ("chips", "Draw memory by physical chip, and what changed."),
        "repro": ("repro", "Print what it takes to run a receipt again."),
    },
    "Plan and launch": {
        "preflight": ("preflight", "Say whether a plan is known to work or to fail, and what to try."),
        "fit": ("fit", "Estimate the memory of a launch on its fullest chip."),
        "run": ("run", "Launch a plan; where memory runs out, launch a smaller one."),
        "ceiling": ("ceiling", "Show the largest shapes that a lane sustained, and what failed."),
    },
    "Publish": {
        "report": ("report", "Write a report: of a week, a lane, a comparison or a claim."),
        "claim": ("claim", "Check published sentences against their receipts."),
        "lint": ("lint", "Check the performance statements in Markdown files."),
        "decide": ("decide", "Write down what was decided on a receipt, and why."),
        "impact": ("impact", "List what goes stale with a receipt."),
    },
    "Rules, lanes and axes": {
        "rules": ("rules", "List the rules, or print one rule's page."),
        "lanes": ("lanes", "List the lanes, or show one."),
        "axes": ("axes", "List every leaf of the receipt with its role."),
    },
    "Look after the store": {
        "pin": ("pin", "Name a receipt, such as @golden."),
        "retract": ("retract", "Withdraw a receipt; it stays in the store, with the reason."),
        "purge": ("purge", "Erase a receipt for good, such as one that holds a secret."),
        "revalidate": ("revalidate", "Judge what is stored again, by the present rules."),
        "flush": ("flush", "Store what was kept here while the server did not answer."),
        "audit": ("audit", "Check every row against its digests and seals."),
        "import": ("import_", "Import a notebook's table, or another store's export."),
        "export": ("export", "Write the store as Parquet, JSON lines or CSV."),
        "backup": ("backup", "Write the whole store into one file."),
        "restore": ("restore", "Make a store from a backup."),
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
        module = importlib.import_module(f"receipts.cli.{entry[0]}")
        found = module.command
        if not isinstance(found, click.Command):
            raise TypeError(f"receipts.cli.{entry[0]}.command is no command")
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one list a section, all with a first column of one width."""
        size = max(map(len, COMMANDS))
        for title, entries in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(size), says) for name, (_, says) in entries.items()])

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

Exit codes: 0 it holds, 1 it does not, 2 the call or the input is wrong, 3 not enough to say, 4 the store failed."""


@click.command(
    cls=Commands,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--store",
    metavar="URL",
    envvar="RECEIPTS_STORE",
    help="Store: a file, or a sqlite:/// or postgresql+psycopg:// URL.",
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
