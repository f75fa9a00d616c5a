"""Where the folders are that ship with the program and are not packages.

`schema/`, `migrations/`, `validators/` and `reports/` are top-level folders of the checkout and never
importable packages: two of those names are live distributions that a training environment may well have
installed. A wheel carries copies of them under `receipts/_bundled/`; in a checkout (or an editable install)
the originals are used.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from receipts.base.errors import ResourceError

FOLDERS: Final = ("schema", "migrations", "validators", "reports")

_PACKAGE = Path(__file__).resolve().parent.parent
_MARK = 'name = "frontier-receipts"'


def folder(name: str) -> Path:
    """The folder `name`, one of `FOLDERS`, as an absolute path.

    Raises `ResourceError` where neither the wheel's copy nor the checkout's original is there.
    """
    if name not in FOLDERS:
        raise ResourceError(f"{name!r} is no folder of this program; there are {', '.join(FOLDERS)}")
    bundled = _PACKAGE / "_bundled" / name
    if bundled.is_dir():
        return bundled
    root = checkout()
    if root is not None and (root / name).is_dir():
        return root / name
    original = root / name if root is not None else f"a checkout's {name}/ (there is none around {_PACKAGE})"
    raise ResourceError(
        f"the folder {name}/ is missing: neither {bundled} nor {original} is there.\n"
        "The installation is incomplete; install it again: pip install --force-reinstall frontier-receipts"
    )


def checkout() -> Path | None:
    """The root of the checkout that this package runs from, or None where it runs from an installed wheel."""
    root = _PACKAGE.parent
    try:
        # The text is enough and `tomllib` would cost more than everything else here.
        mark = _MARK in (root / "pyproject.toml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return root if mark else None
