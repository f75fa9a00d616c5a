"""Both sides as folders: what lies in them, what differs, and that nothing which measures does.

A side's digest is that of a Git tree with every file that is not ignored, added or not. The base is checked out beside
the repository's own work tree; what Git ignores there (an environment, data) is linked into it, so that both sides read
the same.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Final

import receipts
from receipts.base.environment import read_config
from receipts.base.errors import UsageError
from receipts.base.units import counted

# Words of a file's or folder's name, and folders and kinds of files, that say what measures. A repository names its
# own in the receipts.toml of the base: judge = ["bench/**", "eval.py"].
WORDS: Final = frozenset(
    ("eval", "evals", "evaluate", "evaluation", "evaluator", "bench", "benchmark", "benchmarks", "harness")
)
DATA: Final = frozenset(("data", "dataset", "datasets", "tokenizer", "tokenizers"))
KINDS: Final = frozenset((".arrow", ".bin", ".csv", ".gz", ".h5", ".idx", ".jsonl")) | frozenset(
    (".npy", ".npz", ".parquet", ".tar", ".tsv", ".txt", ".zst")
)
CODE: Final = frozenset((".py", ".pyi", ".sh", ".cpp", ".cu", ".cc", ".h", ".md"))
STARTERS: Final = frozenset(("sitecustomize.py", "usercustomize.py", "receipts.toml"))
LOADED: Final = (".py", ".pth", ".so", ".sh", ".pyc")
LARGE: Final = 16 << 20  # bytes of a file that is hashed only where somebody added it
MAX_NAMED: Final = 5
PREFIX: Final = "receipts-judge-"  # of the folder that a call works in
PACKAGE: Final = Path(receipts.__file__).parent
BESIDE_STORE: Final = ("", "-wal", "-shm", "-journal", ".evidence/")


def measures(path: str, declared: Sequence[str] = ()) -> bool:
    """Whether a file belongs to what measures: harness, evaluation, data, receipts, or what is declared."""
    parts = PurePosixPath(path).parts
    name = parts[-1]
    if name in STARTERS or "receipts" in parts[:-1] or name.endswith(".pth"):
        return True
    if declared:
        return any(fnmatch.fnmatchcase(path, pattern) for pattern in declared)
    if any(WORDS & set(re.split(r"[^a-z]+", PurePosixPath(part).stem.lower())) for part in parts):
        return True
    suffix = PurePosixPath(name).suffix.lower()
    return suffix in KINDS - {".txt", ".gz"} or (
        bool(DATA & {part.lower() for part in parts[:-1]}) and suffix not in CODE
    )


def git(*words: str, folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """What Git prints. Raises UsageError with its last line."""
    try:
        done = subprocess.run(
            ["git", *words],
            cwd=folder,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            errors="surrogateescape",
            check=False,
        )
    except FileNotFoundError:
        raise UsageError("git is not installed, and the judge reads by it what differs between the sides") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it failed"])[-1]
        raise UsageError(f"git {' '.join(words[:2])}: {last}")
    return done.stdout.rstrip("\n")


class SideFolder:
    """A side: the folder that its command runs in, and the tree that it lies in."""

    def __init__(self, top: Path, below: str, index: Path, objects: Path) -> None:
        self.top, self.folder = top, top / below
        self._variables = {"GIT_DIR": str(objects), "GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(top)}
        self.tree = self.now()

    def now(self) -> str:
        """The digest of what lies there now."""
        self.git("add", "--all", ".")
        return self.git("write-tree")

    def git(self, *words: str) -> str:
        """Git over the trees of both sides."""
        options = ("-c", "core.looseCompression=0", "-c", "core.autocrlf=false")
        return git(*options, *words, folder=self.top, environment=self._variables)


class Sides:
    """Base and candidate, side by side. Two commands share one folder."""

    def __init__(self, base: SideFolder, candidate: SideFolder) -> None:
        self.base, self.candidate = base, candidate
        names = base.git("diff", "--name-only", "--no-renames", "-z", base.tree, candidate.tree)
        self.changed = tuple(name for name in names.split("\0") if name)
        self._package = _digest(PACKAGE)

    def refuse_other_measures(self) -> None:
        """Raises UsageError where a file that measures differs between the sides."""
        place = self.base.top / "receipts.toml"
        config = read_config(place if place.is_file() else None)
        rules = [os.path.relpath(folder, self.base.top) + os.sep for folder in config.validators]
        other = [path for path in self.changed if measures(path, config.judge) or path.startswith(tuple(rules))]
        if other:
            raise UsageError(
                f"{counted(len(other), 'file')} of what measures differ between the sides: "
                f"{', '.join(other[:MAX_NAMED])}. Commit that by itself, and judge against that commit; or name what "
                'measures in the receipts.toml of the base, as judge = ["eval/**"]'
            )

    def refuse_moved(self) -> list[str]:
        """Raises UsageError where a side, or receipts itself, changed since it was read: a launch may have written it.

        Gives the files that are new, where none is code: a launch may leave logs.
        """
        new: dict[str, None] = {}
        for name, side in (("base", self.base), ("candidate", self.candidate)):
            if (now := side.now()) == side.tree:
                continue
            words = side.git("diff", "--name-status", "--no-renames", "-z", side.tree, now).split("\0")
            files = dict(zip(words[1::2], words[::2], strict=False))
            moved = [path for path, how in files.items() if how != "A" or path.endswith(LOADED) or measures(path)]
            if moved:
                raise UsageError(
                    f"the {name} changed while it was judged: {', '.join(moved[:MAX_NAMED])}; edit nothing meanwhile, "
                    "have Git ignore what a launch writes, and call it again"
                )
            new |= dict.fromkeys(files)
        if _digest(PACKAGE) != self._package:
            raise UsageError(f"receipts itself changed while it judged: {PACKAGE}; install it again")
        return list(new)


def _digest(folder: Path) -> str:
    """A digest of a package's modules and tables."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".toml", ".json") and path.is_file():
            total.update(f"{path.relative_to(folder)}\0".encode())
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


@contextmanager
def sides(revision: str | None, other: Path | None, store: Path | None = None) -> Iterator[Sides]:
    """The sides: the candidate is the work tree here; the base is a revision, another folder, or with neither the same.

    ``store`` is the file of the store: it and what it keeps beside itself are no part of a side.

    Raises UsageError for a revision that there is none of, and outside a repository.
    """
    here = Path.cwd()
    place = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        (place / "owner").write_text(str(os.getpid()))
        top = _top(here) or (None if revision else here)
        if top is None:
            raise UsageError(
                f"{here} is in no Git repository, so {revision} is no revision of it; name the base's folder"
            )
        objects = place / "objects.git"
        git("init", "--quiet", "--bare", str(objects), folder=place)
        ignored = _ignored(top)
        (objects / "info").mkdir(exist_ok=True)
        excluded = ["__pycache__/", *(f"/{name}" for name in ignored)]
        if store is not None and (own := store.resolve()).is_relative_to(top):
            excluded += [f"/{own.relative_to(top).as_posix()}{end}" for end in BESIDE_STORE]
        (objects / "info" / "exclude").write_text("\n".join(excluded) + "\n")
        below = os.path.relpath(here, top)
        candidate = SideFolder(top, below, place / "candidate.index", objects)
        base = candidate
        if revision is not None:
            _clear(top)
            _check_out(top, revision, place / "base")
            base = SideFolder(place / "base", below, place / "base.index", objects)
            for name in ignored:
                path = place / "base" / name
                # Compiled modules of the candidate would be taken for the base's.
                if "__pycache__" not in path.parts and path.parent.is_dir() and not os.path.lexists(path):
                    path.symlink_to(top / name)
            if not base.folder.is_dir():
                raise UsageError(f"{revision} has no folder {below}")
        elif other is not None:
            root = _top(other)
            if root in (None, top):
                candidate = SideFolder(here, ".", place / "here.index", objects)
                root = other.resolve()
            base = SideFolder(root, os.path.relpath(other.resolve(), root), place / "base.index", objects)
        yield Sides(base, candidate)
    finally:
        if revision is not None and (place / "base").exists():
            with suppress(UsageError):
                git("worktree", "remove", "--force", str(place / "base"), folder=here)
        shutil.rmtree(place, ignore_errors=True)


def _top(folder: Path) -> Path | None:
    with suppress(UsageError, OSError):
        return Path(git("rev-parse", "--show-toplevel", folder=folder))
    return None


def _check_out(top: Path, revision: str, place: Path) -> None:
    try:
        commit = git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", folder=top)
    except UsageError:
        raise UsageError(
            f"{revision} is no revision of {top}, no folder and no command in quotes; name one of these"
        ) from None
    # A hook of the work tree may write what it likes.
    git("-c", "core.hooksPath=/dev/null", "worktree", "add", "--quiet", "--detach", str(place), commit, folder=top)


def _clear(top: Path) -> None:
    """Remove what calls that were killed have left checked out."""
    for line in git("worktree", "list", "--porcelain", folder=top).splitlines():
        path = Path(line.removeprefix("worktree "))
        if line.startswith("worktree ") and path.parent.name.startswith(PREFIX):
            with suppress(OSError, ValueError, UsageError):
                owner = int((path.parent / "owner").read_text())
                if owner != os.getpid() and not Path(f"/proc/{owner}").exists():
                    git("worktree", "remove", "--force", str(path), folder=top)
                    shutil.rmtree(path.parent, ignore_errors=True)


def _ignored(top: Path) -> list[str]:
    """What Git ignores in a work tree, as environments, data and outputs, and large files that nobody added."""
    try:
        listed = git("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory", folder=top)
        others = git("ls-files", "-z", "--others", "--exclude-standard", folder=top).split("\0")
    except UsageError:
        listed, others = "", [str(path.relative_to(top)) for path in top.rglob("*")]
    large = [name for name in others if (top / name).is_file() and (top / name).stat().st_size > LARGE]
    return [*(name.rstrip("/") for name in listed.split("\0") if name), *large]
