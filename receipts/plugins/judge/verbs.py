"""``receipts judge``: launch base and candidate in turns, until a change is kept or discarded."""

from __future__ import annotations

import ctypes
import hashlib
import json
import math
import os
import re
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from receipts.base.errors import InputError, NoStore, NotFound, Problem, UsageError
from receipts.base.plugins import service
from receipts.cli import output
from receipts.cli.session import Session, verb
from receipts.plugins.judge.boundary import LOOKS, MAX_TURNS
from receipts.plugins.judge.trial import NO_CAMPAIGN, SESSION, Asked

if TYPE_CHECKING:
    from receipts.plugins.judge.trees import SideFolder, Sides

NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,80}")
SUBREAPER: Final = 36  # PR_SET_CHILD_SUBREAPER of Linux
GRACE: Final = 2.0  # seconds in which what a launch left behind may end by itself
# A candidate that takes so many times the base's longest launch, and so many seconds more, hangs.
MAX_TIMES: Final = 5.0
MIN_LIMIT: Final = 60.0


@verb("judge")
@click.option(
    "--target",
    default="throughput",
    show_default=True,
    metavar="WHAT",
    help="throughput, memory, time-to-loss=3.28, or a metric.",
)
@click.option(
    "--hold",
    "holds",
    multiple=True,
    metavar="WHAT[=SHARE]",
    help="What must not get worse: loss, parity, a metric.  [default: loss]",
)
@click.option("--effect", metavar="SHARE", help="The smallest gain worth keeping, such as 2%.  [default: the lane's δ]")
@click.option("--campaign", metavar="NAME", help="The series that the trial is of.")
@click.option(
    "--turns", type=click.IntRange(1, MAX_TURNS), default=MAX_TURNS, metavar="N", help="Run at most N turns now."
)
@click.option("--afresh", is_flag=True, help="Open the trial anew: a re-run, beside what was judged.")
@click.option("--lane", metavar="LANE", help="The lane of the launches.  [default: that of their framework and chip]")
@click.argument("base", metavar="BASE")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND…")
def judge(
    session: Session,
    target: str,
    holds: tuple[str, ...],
    effect: str | None,
    campaign: str | None,
    turns: int,
    afresh: bool,
    lane: str | None,
    base: str,
    command: tuple[str, ...],
) -> int:
    """Launch a change and its base in turns, and answer: keep, discard, or again.

    BASE is a Git revision, a folder, or a command in quotes. COMMAND runs in this folder, and for a revision or folder
    the same command runs there. Each launch is recorded as by receipts record.

    Examples:
      receipts judge HEAD -- python train.py
      receipts judge main --target memory --hold throughput=1% -- python train.py
      receipts judge HEAD --campaign faster-8b -- torchrun --nproc-per-node 8 train.py
      receipts judge "python train.py --attn math" -- python train.py --attn flash

    It stops as soon as the launches show the answer: looking is part of the plan. A change of what measures (harness,
    evaluation, data, receipts) is refused, and so is a model, batch or data that is another. Called again, it goes on
    where it was. More: docs/judge.md. Exit codes: 0 keep, 1 discard, 2 wrong call or input, 3 again: more turns.
    """
    from receipts.cli.asked import answered
    from receipts.plugins.judge import questions
    from receipts.plugins.judge.outcome import quantity
    from receipts.plugins.judge.trees import sides
    from receipts.questions.gate import share
    from receipts.store.address import address

    for item in (target, *holds):
        quantity(item)
    least = None if effect is None else share(effect)
    if effect is not None and least is None:
        raise UsageError(f"--effect {effect}: write a share, such as 2%")
    if campaign is not None and (NAME.fullmatch(campaign) is None or campaign == NO_CAMPAIGN):
        raise UsageError(f"--campaign {campaign}: write letters, digits, . _ or -")
    recording = service("launch", "receipts judge")
    asked = recording.recorder_settings(session, lane)
    folder = Path(base) if os.path.isdir(base) else None
    own = recording.words_of(base) if folder is None and (" " in base.strip() or recording.is_script(base)) else command
    file = None if session.server is not None else address(session.store_url).file
    with sides(base if folder is None and own is command else None, folder, file) as both:
        both.refuse_other_measures()
        question = Asked(target, holds, least, _digest(both.base, own), _digest(both.candidate, command))
        name = f"{campaign or NO_CAMPAIGN}/{question.number}"
        if afresh:
            name = next(own for count in range(2, 1000) if _answer(session, own := f"{name}.{count}") is None)
        turn = Turns(session, both, {"base": own, "candidate": command}, question, name, asked)
        turn.run(turns)
    if turn.ended is not None:
        session.progress.clear()
        output.line(
            json.dumps({"trial": turn.name, "answer": "discard", "why": turn.ended})
            if session.as_json
            else f"DISCARD  {turn.ended}"
        )
        return 1
    return answered(
        questions.judge, session, {"trial": turn.name, "record": True, "form": "text", "as_json": session.as_json}
    )


def _digest(side: SideFolder, words: Sequence[str]) -> str:
    """What a side is: its files and its command."""
    return hashlib.sha256(json.dumps([side.tree, list(words)]).encode()).hexdigest()[:16]


def _answer(session: Session, name: str) -> dict[str, Any] | None:
    """What the trial says so far; None where it has no launch."""
    from receipts.api.session import Session as Asking
    from receipts.plugins.judge import questions

    try:
        if session.server is not None:
            return dict(session.server.get(questions.judge.path, [("trial", name)]).data)
        # A launch may last for days: the store is open for a moment.
        with session.open_store() as store:
            return dict(questions.judge.function(Asking(store, session.rulebook), trial=name).to_dict())
    except (NotFound, NoStore):
        return None


@dataclass
class Turns:
    """The launches of one call."""

    session: Session
    sides: Sides
    words: dict[str, Sequence[str]]
    asked: Asked
    name: str
    settings: dict[str, str]
    ended: str | None = None  # why there is nothing to judge: the candidate fails before its first step, or hangs
    longest: float = 0.0  # seconds of a launch of the base

    def run(self, most: int) -> None:
        """Launch until there is an answer, or so many turns were run. Raises UsageError while another call does."""
        if other := next(processes_with(f"RECEIPTS_SESSION={SESSION}{self.name}"), None):
            raise UsageError(
                f"a launch of {self.name} is running, as process {other}: of another call, or of one that was killed; "
                "wait for it, or end it"
            )
        adopt()
        known = _answer(self.session, self.name)
        if known is not None and known["answer"] != "again":
            output.note(f"receipts: {self.name} was judged already; --afresh opens it anew")
            return
        new: list[str] = []
        for _ in range(most):
            done, launched = (known or {}).get("turns", 0), (known or {}).get("launched", {})
            order = ("base", "candidate") if done % 2 == 0 else ("candidate", "base")
            # A call that was killed has left one side short of a launch.
            fewest = min(launched.values(), default=0)
            behind = [side for side in order if launched.get(side, 0) == fewest]
            for side in behind:
                new = self.sides.refuse_moved()
                following = next((looks for looks in LOOKS if looks > done), done)
                output.note(f"receipts: {side}, turn {done + 1}; the next look is after {following}")
                if not self._launch(side):
                    return
            known = _answer(self.session, self.name)
            if known is None or known["answer"] != "again" or not known["more"]:
                break
        if new:
            output.note(
                f"receipts: a launch wrote {', '.join(new[:3])}; have Git ignore it, or the next call is another trial"
            )

    def _launch(self, side: str) -> bool:
        """Launch a side once; whether there is something to judge.

        Raises UsageError where the base fails, and InputError where a job called its launch something else.
        """
        environment = {
            **self.settings,
            "RECEIPTS_SESSION": f"{SESSION}{self.name}",
            "RECEIPTS_TAGS": ",".join(self.asked.tags(side)),
            "RECEIPTS_LABEL": f"{self.name} {side}",
        }
        at = (self.sides.base if side == "base" else self.sides.candidate).folder
        # Standard output is the answer's alone.
        launch = service("launch", "receipts judge").launch
        before, begun = children(), time.monotonic()
        limit = self.longest * MAX_TIMES + MIN_LIMIT if side == "candidate" and self.longest else None
        out = sys.stderr.fileno()
        code, ids = launch(self.session, self.words[side], environment, at, out, quiet=True, limit=limit)
        end_left_behind(before)
        spent = time.monotonic() - begun
        if side == "base":
            self.longest = max(self.longest, spent)
        elif limit is not None and spent > limit:
            self.ended = f"the candidate was ended after {spent:,.0f} s; the base took {self.longest:,.0f} s at most"
            return False
        if code == -signal.SIGINT:
            raise KeyboardInterrupt
        if code and side == "base":
            raise UsageError(f"the base fails: its command ended with exit code {code}; mend it, or name another base")
        if len(ids) != 1:
            what = "recorded nothing" if not ids else f"recorded {len(ids)} launches"
            if code and not ids:
                self.ended = f"the candidate ended with exit code {code}, before it recorded a step"
                return False
            raise UsageError(f"the {side} {what}, and a turn is one launch a side; see: receipts record --help")
        if self.session.server is None:  # the server's own answer reads the tags
            with self.session.open_store() as store:
                run = store.parsed(ids[0]).receipt.run
            if run.session != f"{SESSION}{self.name}" or set(self.asked.tags(side)) - set(run.tags or ()):
                what = f"the job of the {side} changed RECEIPTS_SESSION or RECEIPTS_TAGS"
                raise InputError(ids[0][:12], [Problem("run.tags", what, "leave both alone")])
        return not code


def adopt() -> None:
    """What a launch leaves behind becomes a child of this process, where the system can do that."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)


def children() -> set[int]:
    """The processes below this one; empty where the system does not tell."""
    lists = Path("/proc/self/task").glob("*/children")
    with suppress(OSError, ValueError):
        return {int(word) for path in lists for word in path.read_text().split()}
    return set()


def processes_with(variable: str) -> Iterator[int]:
    """The processes that were started with a variable of the environment; none where the system does not tell."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if variable.encode() in path.read_bytes().split(b"\0"):
                yield int(path.parent.name)


def end_left_behind(before: set[int]) -> None:
    """End what a launch left behind: it would slow down the next one, which may be the other side's."""
    until = time.monotonic() + GRACE
    while left := children() - before:
        late = time.monotonic() > until
        if late:
            output.note(f"receipts: the launch left {len(left)} processes behind, which were ended")
            until = math.inf
        for process in left:
            with suppress(OSError):
                os.kill(process, signal.SIGKILL) if late else None
                os.waitpid(process, os.WNOHANG)
        time.sleep(0.05)
