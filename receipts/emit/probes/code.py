"""The project's own code: repository and commit of the main script, and one digest of the files really imported.

Imported files are those of every module that comes neither from the standard library nor from an installed wheel, with
the main script; editable checkouts are among them. What is imported by the recorder's start is digested then, as far as
its time goes; the rest at the end, where a file that was changed in between makes the digest unknown.
"""

from __future__ import annotations

import os
import time

from receipts.emit.files import sha256
from receipts.emit.probes import imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from receipts.emit.probing import ProbeOutput

NAME = "code"
MAY_BLOCK = True
RANKS = "host"
# What the start may take for digests, and how many files are digested then whatever that takes.
BUDGET_SECONDS = 0.01
MIN_MODULES = 50
CLOCK_SECONDS = 0.02
MAX_CHECKOUTS = 4
_GIT = ("git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")


def at_start(stated: ProbeOutput) -> None:
    """State the main script's commit; begin to digest what is imported."""
    # A file's time comes from a clock that is some milliseconds late.
    stated.kept["begun"] = time.time() - CLOCK_SECONDS
    stated.kept["digests"] = {}
    own = imported.project_files(imported.module_files())
    until = time.perf_counter() + BUDGET_SECONDS
    for number, name in enumerate(sorted(own, key=lambda name: (name != "__main__", name))):
        if number >= MIN_MODULES and time.perf_counter() > until:
            break
        _digest(stated, name, own[name])
    script = stated.kept["script"] = own.get("__main__")
    if script is not None:
        # Commit and changes by one call; files that git does not know are no change of the commit.
        words = ("--porcelain=v2", "--branch", "--untracked-files=no", "--ignore-submodules=dirty")
        lines = git(stated, os.path.dirname(script), "status", *words).splitlines()
        commit = next((line.partition(" branch.oid ")[2] for line in lines if line.startswith("# branch.oid ")), "")
        if len(commit) >= 40:
            stated.put("code.commit", commit)
            stated.put("code.dirty", any(not line.startswith("#") for line in lines))


def at_end(stated: ProbeOutput) -> None:
    """State the digest of all that was imported, and tell of checkouts beside the main script's."""
    modules = imported.module_files()
    if (script := stated.kept.get("script")) is not None:
        # Python takes the file's name from a main script that has ended, before it calls what runs at exit.
        modules.setdefault("__main__", script)
    own = imported.project_files(modules)
    digests: dict[str, str] = stated.kept.get("digests", {})
    changed = []
    for name, path in own.items():
        if name not in digests:
            if _mtime(path) > stated.kept.get("begun", 0.0):
                changed.append(name)
            _digest(stated, name, path)
    lost = sorted(set(own) - set(digests))
    if changed or lost:
        names = ", ".join(sorted({*changed, *lost})[:5])
        stated.note(f"no digest of the imported files: {names} changed, or went, since the run began")
    elif "__main__" not in modules:
        stated.note("no digest of the imported files: the main program is no file (a notebook, or -c)")
    else:
        stated.put("code.imported_digest", imported.digest_of_files({name: digests[name] for name in own}))
        stated.note(f"imported files of the project's own: {len(own)}")
    script = own.get("__main__")
    if script is not None and stated.get("code.commit") is not None:
        folder = os.path.dirname(script)
        if top := git(stated, folder, "rev-parse", "--show-toplevel").strip():
            stated.kept["top"] = top
            remote = git(stated, folder, "config", "--get", "remote.origin.url").strip()
            stated.put("code.repository", without_user(remote) or os.path.basename(top))
            if not git(stated, folder, "ls-files", "--", script).strip():
                stated.put("code.dirty", True)
                stated.note("the main script is not in the commit: git does not track it")
    # Packages that were imported from another checkout, with its commit.
    own_top = stated.kept.get("top")
    roots: dict[str, set[str]] = {}
    for name, path in own.items():
        root = path[: -len(imported.relative_path(name, path))].rstrip(os.sep)
        if name != "__main__" and root and not (own_top and path.startswith(own_top + os.sep)):
            roots.setdefault(root, set()).add(name.partition(".")[0])
    for root, packages in sorted(roots.items())[:MAX_CHECKOUTS]:
        if commit := git(stated, root, "rev-parse", "HEAD").strip():
            stated.note(f"{', '.join(sorted(packages)[:5])}: imported from another checkout, commit {commit}")


def _digest(stated: ProbeOutput, name: str, path: str) -> None:
    try:
        stated.kept["digests"][name] = sha256(path)
    except OSError as error:
        stated.note(f"{name} could not be read: {error.strerror}")


def _mtime(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def git(stated: ProbeOutput, folder: str, *words: str) -> str:
    """What git prints; empty where there is no git, no repository, or no answer in time."""
    import subprocess

    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            [*_GIT, "-C", folder, *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=max(0.1, stated.seconds_left()),
            check=False,
        )
    except FileNotFoundError:
        return ""
    except (OSError, subprocess.TimeoutExpired) as error:
        stated.note(f"git {words[0]}: {type(error).__name__}")
        return ""
    if done.returncode and b"dubious ownership" in done.stderr:
        stated.note("git does not trust the repository's owner; git config safe.directory names it")
    return os.fsdecode(done.stdout) if done.returncode == 0 else ""


def without_user(address: str) -> str:
    """A remote's address without the user or token in it; `git@host:path` names no secret and stays."""
    scheme, sign, rest = address.partition("://")
    if not sign:
        return address
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"
