"""The program as a process: pipes, terminals, widths, colours and shells."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from command_line import HOSTILE, Shell

pytestmark = pytest.mark.slow

# A valid one: what tests write is typed, and a process judges it as of today.
RECORDED = Path(__file__).parents[2] / "examples" / "cpu" / "attention-math-1.json"
PROGRAM = "import sys; from receipts.cli import main; sys.exit(main())"
# Several commands, one after another: each start of Python takes half a second.
SEVERAL = "import json, sys; from receipts.cli import main; [main(words) for words in json.loads(sys.argv[1])]"
ANSI = re.compile(rb"\x1b\[[0-9;]*m")
PROGRESS = re.compile(rb"\r(?:\d+ s)?\x1b\[K")  # a slow machine counts the seconds


def _environment(**changes: str) -> dict[str, str]:
    plain = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "TERM")}
    return {**plain, "TERM": "xterm-256color", **changes}


def _run(*words: str, given: bytes = b"", **changes: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        input=given,
        capture_output=True,
        check=False,
        env=_environment(**changes),
    )


def _on_terminal(
    environment: Mapping[str, str], *commands: Sequence[str], columns: int = 80, program: str = SEVERAL
) -> bytes:
    """What a terminal of that width receives of some commands."""
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", program, json.dumps(commands)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=dict(environment),
    )
    os.close(theirs)
    found, deadline = b"", time.monotonic() + 60
    while time.monotonic() < deadline:
        ready, _, _ = select.select([ours], [], [], 0.2)
        if not ready:
            continue
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        found += part
    process.wait(timeout=30)
    os.close(ours)
    return found


def test_a_dash_is_standard_input(shell: Shell) -> None:
    raw = RECORDED.read_bytes()
    stored = _run("submit", "-", given=raw)
    assert stored.returncode == 0, stored.stderr
    assert stored.stdout.startswith(sha256(raw).hexdigest()[:12].encode())
    assert _run("check", "-", given=raw).returncode == 0
    assert _run("check", "-", given=b"{").returncode == 2


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = f'"{sys.executable}" -c "{PROGRAM}" axes; echo "exit $?" >&2'
    done = subprocess.run(
        ["bash", "-c", f"({command}) | head -1"], capture_output=True, text=True, check=False, env=_environment()
    )
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == "exit 0\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a full disk is needed")
def test_a_full_disk_behind_the_output_is_no_defect() -> None:
    call = [sys.executable, "-c", PROGRAM, "axes"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(call, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=_environment())
    assert done.returncode == 4
    assert done.stderr == "receipts: the output: No space left on device; make room, and do it again\n"


def test_the_exit_code_is_that_of_the_process(shell: Shell) -> None:
    words = ("check", shell.write("one", run__lane="unlisted"))
    assert _run(*words).returncode == shell(*words).code == 3


def test_a_store_that_fails_is_four(shell: Shell) -> None:
    (shell.folder / "store.sqlite").write_text("this is no database", encoding="utf-8")
    done = _run("list")
    assert done.returncode == 4
    assert b"Traceback" not in done.stderr


def test_piped_output_has_no_colour_and_no_box(shell: Shell) -> None:
    shell.store("one")
    for words in (("list",), ("check", "one.json"), ("lanes",)):
        out = _run(*words, FORCE_COLOR="1").stdout.decode()
        assert "\x1b" not in out
        assert not set("─│━┃") & set(out)


def test_a_terminal_gets_colour_and_a_table(shell: Shell) -> None:
    assert shell("submit", str(RECORDED)).code == 0
    seen = _on_terminal(_environment(), ["list"], ["check", str(RECORDED)])
    assert ANSI.search(seen)
    assert "─".encode() in seen
    assert b"\x1b[32mVALID" in seen


@pytest.mark.parametrize("changes", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_that_wants_no_colour_gets_none(shell: Shell, changes: dict[str, str]) -> None:
    assert shell("submit", str(RECORDED)).code == 0
    seen = _on_terminal(_environment(**changes), ["check", str(RECORDED)], ["list"])
    assert b"VALID" in seen
    assert b"\x1b[3" not in seen


@pytest.mark.parametrize("columns", [40, 80])
def test_a_narrow_terminal_is_never_overrun(shell: Shell, columns: int) -> None:
    shell.store("one", run__label="a label of several words that goes on and on", batch__global_batch=17)
    commands = (["list"], ["check", "one.json"], ["show", "one.json"], ["lanes"])
    seen = ANSI.sub(b"", PROGRESS.sub(b"", _on_terminal(_environment(), *commands, columns=columns))).decode()
    assert len(seen.splitlines()) > 40
    # An id or a path has no place to break.
    assert not [line for line in seen.splitlines() if len(line) > columns and max(map(len, line.split())) < columns - 6]


def test_a_narrow_pipe_folds_sentences(shell: Shell) -> None:
    path = shell.write("torn", batch__global_batch=17)
    out = _run("check", path, COLUMNS="40").stdout.decode()
    assert all(len(line) <= 40 for line in out.splitlines() if line.startswith("    ") and " " in line.strip())


def test_a_hostile_label_does_not_steer_a_terminal(shell: Shell) -> None:
    shell.store("evil", run__label=HOSTILE)
    commands = (["list"], ["show", "evil.json"], ["show", "evil.json", "--raw"], ["list", "--json"])
    seen = PROGRESS.sub(b"", _on_terminal(_environment(NO_COLOR="1"), *commands, columns=200)).decode()
    assert seen.count("evil") >= len(commands)
    assert not {"\x1b", "\u202e", "\x07", "\x9b"} & set(seen)


def test_long_work_says_how_far_it_is_on_a_terminal(shell: Shell) -> None:
    # Short work needs no line; here all is long.
    program = f"import receipts.cli.output as output; output.SLOW = output.PATIENCE = 0; {SEVERAL}"
    paths = [shell.write(f"n{number}") for number in range(40)]
    seen = _on_terminal(_environment(), ["submit", "--quiet", *paths], program=program)
    assert b" of 40" in seen
    assert seen.endswith(b"\r\x1b[K")


def test_control_c_is_one_word_and_130() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "check", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(),
    )
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.split() == [b"stopped"]


def test_a_shell_really_completes() -> None:
    done = _run(_RECEIPTS_COMPLETE="bash_complete", COMP_WORDS="receipts comp", COMP_CWORD="1")
    assert done.stdout.decode().split() == ["plain,compare", "plain,completion"]
    done = _run(_RECEIPTS_COMPLETE="bash_complete", COMP_WORDS="receipts compare --met", COMP_CWORD="2")
    assert b"--metric" in done.stdout


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(shell: Shell, name: str) -> None:
    said = shell("completion", name)
    assert said.code == 0
    assert "_RECEIPTS_COMPLETE" in said.out
    assert f"{name}_complete" in said.out


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_keeps_a_label_whole_and_escapes_its_blanks(shell: Shell, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho 'plain,cpu attention math 1'\n")
    program.chmod(0o755)
    heard = 'compopt() { echo "$@"; }'
    asked = f'{heard}\n{shell("completion", "bash").out}\n_receipts_completion {program}; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["-o filenames", "cpu attention math 1"]
