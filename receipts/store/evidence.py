"""Files of evidence, kept by their digests beside a store: packed with gzip, written whole or not at all.

The folder is ``STORE.evidence`` beside an SQLite file, or what ``RECEIPTS_EVIDENCE`` names: a folder, or the URL of an
object store (``s3://bucket/prefix``, ``gs://…``, ``file:///…``), which needs the extra ``objects``. A file is never
changed; what no receipt names can be collected. ``RECEIPTS_EVIDENCE_LIMIT`` limits all of them together (``200 GiB``).
"""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import re
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple, cast

from receipts.base.environment import extra
from receipts.base.errors import NoRoom, NotFound, StoreError, UsageError
from receipts.base.files import OF_THE_DISK, staged, to_disk
from receipts.base.units import amount, read_printed
from receipts.emit.files import file_mode, make_folder
from receipts.receipt.parse import listed_digests

if TYPE_CHECKING:
    from receipts.store import Store
    from receipts.store.address import Address


VARIABLE: Final = "RECEIPTS_EVIDENCE"
LIMIT: Final = "RECEIPTS_EVIDENCE_LIMIT"
MAX_KEPT_BYTES: Final = 1 << 30  # of one file, unpacked
_BLOCK: Final = 1 << 20
_IN_MEMORY: Final = 1 << 23  # of a packed file that comes from an object store
_NAME: Final = re.compile(r"(?P<digest>[0-9a-f]{64})\.gz")


class KeptFile(NamedTuple):
    """A kept file: its digest, and the bytes that it takes where it is kept."""

    digest: str
    size: int


class KeptFiles:
    """The files of evidence of one store. Raises StoreError where the place cannot be read or written."""

    def __init__(self, place: Folder | Bucket, limit: float = math.inf) -> None:
        self._place = place
        self._limit = limit  # bytes of all packed files

    def __repr__(self) -> str:
        return f"KeptFiles({self._place!r})"

    def put(self, file: Path) -> str:
        """Keep a file; its digest. The same bytes are kept once. Raises UsageError for one that is too large."""
        if file.stat().st_size > MAX_KEPT_BYTES:
            raise UsageError(f"{file}: {file.stat().st_size:,} bytes, and {MAX_KEPT_BYTES:,} are the most that is kept")
        with _scratch() as packed:
            digest = _pack(file, packed)
            if digest not in self.held([digest]):
                size, used = packed.stat().st_size, sum(self._place.sizes().values()) if self._limit < math.inf else 0
                if used + size > self._limit:
                    raise StoreError(
                        f"{file}: {amount(size)} packed, beside {amount(used)} that are kept, is more than {LIMIT} "
                        f"allows ({amount(self._limit)}); free some with: receipts evidence gc --older 365, or raise it"
                    )
                self._place.put(f"{digest}.gz", packed)
        return digest

    @contextmanager
    def file(self, digest: str) -> Iterator[Path]:
        """The file of a digest, unpacked for as long as the block lasts. Raises NotFound, StoreError if damaged."""
        packed = self._place.open(f"{digest}.gz")
        if packed is None:
            raise NotFound(f"no file with the digest {digest[:12]} is kept; see: receipts evidence list")
        with _scratch() as plain:
            try:
                with packed, gzip.open(packed, "rb") as source, plain.open("wb") as target:
                    _copy(source, target, digest)
            except (OSError, EOFError, zlib.error) as error:
                raise StoreError(f"the kept file {digest[:12]} is damaged ({error}); restore a backup") from None
            yield plain

    def held(self, digests: Iterable[str]) -> frozenset[str]:
        """Those of some digests whose files are kept."""
        return frozenset(item for item in digests if self._place.has(f"{item}.gz"))

    def all(self) -> list[KeptFile]:
        """Every kept file, by digest."""
        names = ((_NAME.fullmatch(name), size) for name, size in sorted(self._place.sizes().items()))
        return [KeptFile(match["digest"], size) for match, size in names if match]

    def remove(self, digest: str) -> None:
        """Forget the file of a digest."""
        self._place.remove(f"{digest}.gz")


class Folder:
    """A folder, with a folder in it for each first byte of a digest."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __repr__(self) -> str:
        return f"Folder({str(self.root)!r})"

    def _path(self, name: str) -> Path:
        return self.root / name[:2] / name

    def has(self, name: str) -> bool:
        """Whether it keeps a file of that name."""
        return self._path(name).is_file()

    def put(self, name: str, file: Path) -> None:
        """Keep a packed file under a name, whole or not at all."""
        target = self._path(name)
        try:
            make_folder(target.parent)
            with (
                staged(target, over=True, mode=file_mode(target.parent)) as beside,
                file.open("rb") as source,
                beside.open("wb") as out,
            ):
                for block in iter(lambda: source.read(_BLOCK), b""):
                    out.write(block)
            to_disk(target.parent.parent)
        except OSError as error:
            kind = NoRoom if error.errno in OF_THE_DISK else StoreError
            raise kind(f"{self.root}: evidence cannot be kept ({error.strerror})") from None

    def open(self, name: str) -> IO[bytes] | None:
        """The packed file of that name; None where there is none."""
        return self._path(name).open("rb") if self.has(name) else None

    def sizes(self) -> dict[str, int]:
        """Bytes by name."""
        return {path.name: path.stat().st_size for path in self.root.glob("??/*.gz")}

    def remove(self, name: str) -> None:
        """Forget the file of that name."""
        self._path(name).unlink(missing_ok=True)


class Bucket:
    """An object store by URL, through obstore."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._store = extra("obstore.store", "objects", url).from_url(url)

    def __repr__(self) -> str:
        return f"Bucket({self._url!r})"

    def has(self, name: str) -> bool:
        """As `Folder.has`."""
        with _as_store_error(self._url):
            try:
                self._store.head(name)
            except FileNotFoundError:
                return False
        return True

    def put(self, name: str, file: Path) -> None:
        """As `Folder.put`."""
        with _as_store_error(self._url):
            self._store.put(name, file)

    def open(self, name: str) -> IO[bytes] | None:
        """As `Folder.open`."""
        with _as_store_error(self._url):
            try:
                body = self._store.get(name)
            except FileNotFoundError:
                return None
            packed = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - the caller closes it
            for block in body.stream():
                packed.write(block)
            packed.seek(0)
        return cast("IO[bytes]", packed)

    def sizes(self) -> dict[str, int]:
        """As `Folder.sizes`."""
        with _as_store_error(self._url):
            return {item["path"].rpartition("/")[2]: item["size"] for part in self._store.list() for item in part}

    def remove(self, name: str) -> None:
        """As `Folder.remove`."""
        with _as_store_error(self._url):
            self._store.delete(name)


def kept_files(address: Address) -> KeptFiles | None:
    """The kept files of a store; None for a server's database where `VARIABLE` names no place."""
    named, limit = os.environ.get(VARIABLE, ""), os.environ.get(LIMIT)
    if not named and address.file is None:
        return None
    size = read_printed(limit) if limit else None
    if limit and (size is None or size.value <= 0):
        raise UsageError(f"{LIMIT}={limit}: it is no amount; write it like 200 GiB")
    folder = Path(named) if named or address.file is None else _beside(address.file)
    return KeptFiles(Bucket(named) if "://" in named else Folder(folder), math.inf if size is None else size.value)


def files_beside(file: Path) -> KeptFiles:
    """The kept files of a store's file, of a backup or of an export: the folder ``FILE.evidence``."""
    return KeptFiles(Folder(_beside(file)))


def _beside(file: Path) -> Path:
    return file.with_name(f"{file.name}.evidence")


@contextmanager
def _as_store_error(url: str) -> Iterator[None]:
    from obstore.exceptions import BaseError

    try:
        yield
    except BaseError as error:
        raise StoreError(f"{url}: {str(error).splitlines()[0]}") from None


@contextmanager
def _scratch() -> Iterator[Path]:
    descriptor, name = tempfile.mkstemp(prefix="receipts-evidence-")
    os.close(descriptor)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _pack(file: Path, packed: Path) -> str:
    """Pack a file; the digest of what was packed."""
    whole = hashlib.sha256()
    try:
        with file.open("rb") as source, gzip.open(packed, "wb", compresslevel=3) as target:
            for block in iter(lambda: source.read(_BLOCK), b""):
                whole.update(block)
                target.write(block)
    except OSError as error:
        kind = NoRoom if error.errno in OF_THE_DISK else StoreError
        raise kind(f"{file}: it cannot be kept ({error.strerror}), and nothing was") from None
    return whole.hexdigest()


def _copy(source: gzip.GzipFile, target: IO[bytes], digest: str) -> None:
    size, whole = 0, hashlib.sha256()
    for block in iter(lambda: source.read(_BLOCK), b""):
        whole.update(block)
        size += target.write(block)
        if size > MAX_KEPT_BYTES:
            raise StoreError(f"the kept file {digest[:12]} unpacks to more than {MAX_KEPT_BYTES:,} bytes")
    if whole.hexdigest() != digest:
        raise StoreError(f"the kept file {digest[:12]} has other bytes ({size:,} of them); restore a backup")


def named_files(store: Store, since: datetime | None = None) -> dict[str, list[str]]:
    """The digests of all files that receipts of the store list, each with their ids; of launches ``since`` a time."""
    receipts: dict[str, list[str]] = {}
    for item in map(store.parsed, store.ids()):
        if since is None or item.receipt.run.started >= since:
            for digest in listed_digests(item):
                receipts.setdefault(digest, []).append(item.id)
    return receipts


def collect(store: Store, *, since: datetime | None = None, dry_run: bool = False) -> list[KeptFile]:
    """Forget the kept files that no receipt lists, or none of a launch ``since`` a time; what they were."""
    kept = kept_files(store.database.address)
    if kept is None:
        return []
    named = named_files(store, since)
    loose = [item for item in kept.all() if item.digest not in named]
    for item in loose if not dry_run else ():
        kept.remove(item.digest)
    return loose


def copy_all(source: KeptFiles | None, target: KeptFiles | None) -> int:
    """Copy kept files, each checked against its digest; how many. For a backup and a restore."""
    if source is None or target is None:
        return 0
    files = source.all()
    for item in files:
        with source.file(item.digest) as plain:
            target.put(plain)
    return len(files)


def forget(store: Store, digests: Iterable[str]) -> None:
    """Forget kept files of a purged receipt, but for those that another receipt lists."""
    kept = kept_files(store.database.address)
    wanted = kept.held(digests) if kept is not None else frozenset[str]()
    if kept is not None and wanted:
        named = named_files(store)
        for digest in wanted - named.keys():
            kept.remove(digest)
