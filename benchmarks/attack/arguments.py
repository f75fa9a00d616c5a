"""Every command, called with hostile words and files: a clear answer, no traceback, no hang, bounded memory."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from benchmarks.attack.forks import Ended, forked
from benchmarks.attack.hostile import WORDS, files
from benchmarks.attack.outcome import Outcome, outcome
from receipts.cli import group as cli

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# They answer until somebody stops them, or start a program that the words name.
LEFT_OUT = ("serve", "mcp", "watch", "run")
SECONDS = 60.0


def commands() -> dict[tuple[str, ...], click.Command]:
    """Every command by its words."""
    return {words: one for words, one in _under((), cli.group) if words and words[0] not in LEFT_OUT}


def _under(words: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        if inner is not None:
            yield from _under((*words, name), inner)


def call(command: click.Command, places: list[str], draw: random.Random) -> list[str]:
    """Some arguments for a command: as many as it takes, or one more or less, and up to three options."""
    words: list[str] = []
    options = [item for item in command.params if isinstance(item, click.Option) and not item.is_eager]
    for option in draw.sample(options, min(len(options), draw.choice((0, 0, 1, 1, 2, 3)))):
        words.append(draw.choice(option.opts))
        if not (option.is_flag or option.count):
            choices = list(getattr(option.type, "choices", ()))
            words += [_word(places, draw) if not choices or draw.random() < 0.2 else str(draw.choice(choices))]
    for item in command.params:
        if isinstance(item, click.Argument):
            most = draw.choice((1, 2, 3)) if item.nargs == -1 else item.nargs
            words += [_word(places, draw) for _ in range(most + draw.choice((0,) * 18 + (1, -1)))]
    return words


def _word(places: list[str], draw: random.Random) -> str:
    word = draw.choice(WORDS)
    match draw.randrange(8):
        case 0 | 1 | 2 | 3 | 4:
            return draw.choice(places)
        case 5:
            return f"{draw.choice(('label', 'lane', 'chips', 'run.started', 'flags.A', 'batch.micro_batch'))}={word}"
        case _:
            return word


def called(folder: Path, calls: int, seed: int = 27) -> Outcome:
    """Call each command so often, on a store of the examples."""
    begun, ends, faults, ended = time.monotonic(), Counter[str](), list[str](), list[Ended]()
    (folder / "files").mkdir()
    places = [str(item) for item in files(folder / "files", EXAMPLES)]
    os.environ.update(
        RECEIPTS_STORE=str(folder / "store.sqlite"), HOME=str(folder), XDG_STATE_HOME=str(folder / "state")
    )
    forked(lambda: cli.run(["submit", *map(str, sorted((EXAMPLES / "cpu").glob("*.json")))]), 60)
    for words, command in commands().items():
        for number in range(calls):
            draw = random.Random(f"{seed} {words} {number}")
            line = [*words, *call(command, places, draw)]
            one = forked(lambda: _call(folder, line), SECONDS)  # noqa: B023 — called at once
            ended.append(one)
            ends[f"exit {one.code}"] += 1
            if one.fault:
                faults.append(f"receipts {' '.join(word[:60].replace(str(folder), '.') for word in line)}: {one.fault}")
    if (folder / "climbed.json").exists() or (folder.parent / "climbed.json").exists():
        faults.append("a member of an archive was written outside")
    return outcome(len(ended), ends, faults, ended, max(item.seconds for item in ended), begun)


def _call(folder: Path, words: list[str]) -> int:
    os.chdir(folder)
    return cli.run(words)
