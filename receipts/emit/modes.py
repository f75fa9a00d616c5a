"""Who may read what is kept: its owner alone, or the group for whom somebody shared the folder.

A store, its evidence, a backup and a journal hold what a run says of itself. A folder that its group may write, or with
the setgid bit, was shared by intent, and what is made in it follows. A sticky folder such as /tmp is everybody's.
"""

from __future__ import annotations

import os
import stat

_PRIVATE = 0o700


def file_mode(folder: str | os.PathLike[str]) -> int:
    """The mode of a file that is made in a folder."""
    return _shared(folder) & 0o666


def make_folder(folder: str | os.PathLike[str]) -> None:
    """Make a folder, and those above that are missing; one that exists stays as it is. Raises OSError."""
    folder = os.path.abspath(folder)
    if os.path.isdir(folder):
        return
    above = os.path.dirname(folder)
    make_folder(above)
    try:
        os.mkdir(folder, _PRIVATE)
    except FileExistsError:  # another process was faster, or it is a file
        if not os.path.isdir(folder):
            raise
        return
    if (mode := _shared(above)) != _PRIVATE:
        os.chmod(folder, mode | stat.S_IMODE(os.stat(folder).st_mode) & stat.S_ISGID)


def _shared(folder: str | os.PathLike[str]) -> int:
    """The bits of a folder that a group shares, without writing by everybody; else its owner's alone."""
    mode = stat.S_IMODE(os.stat(folder).st_mode)
    sticky, shared = mode & stat.S_ISVTX, mode & (stat.S_IWGRP | stat.S_ISGID)
    return mode & 0o775 | _PRIVATE if shared and not sticky else _PRIVATE
