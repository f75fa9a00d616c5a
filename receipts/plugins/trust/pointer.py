"""Pointers: a small file in git, ``NAME.receipt.toml``, that names a receipt, a digest, and where its bundle is.

Wherever a command takes a receipt's file it takes a pointer. The bundle comes from a folder, over HTTP, or from a
registry of the OCI distribution specification 1.1, as ``oras`` fills it, and each byte is held against the digests that
git keeps: what a place answers is never trusted. A registry asks for a token with ``WWW-Authenticate``; who asks for
one is whom ``docker login`` or ``oras login`` wrote to Docker's configuration, or nobody.
"""

from __future__ import annotations

import atexit
import base64
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request, urlopen

from receipts import __version__
from receipts.base import files
from receipts.base.errors import InputError, NotFound, Problem, Unreachable, UsageError, may_answer_later
from receipts.base.untrusted_text import parse_toml
from receipts.plugins.trust import verify
from receipts.receipt import Document
from receipts.receipt.load import refusal

SCHEMA: Final = "1.0"
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_KEYS: Final = {"schema_version", "receipt", "digest", "bundle", "key"}
_DO: Final = "write it with: receipts pointer BUNDLE --at PLACE"
MAX_BUNDLE: Final = 1 << 29  # bytes
MAX_MANIFEST: Final = 4 << 20
PATIENCE: Final = 60.0  # seconds for one answer
LOCAL: Final = ("127.0.0.1", "::1", "localhost")
MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
_OCI: Final = re.compile(
    r"oci://(?P<host>[A-Za-z0-9.-]+(?::[0-9]{1,5})?|\[::1\]:[0-9]{1,5})/(?P<name>[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127})|@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_CHALLENGE: Final = re.compile(r'(\w+)="([^"]*)"')


class Pointer(NamedTuple):
    """The id of a receipt, the digest of its bundle, where that is, and the public key that must have signed it."""

    receipt: str
    digest: str
    bundle: str
    key: str | None = None

    def text(self) -> str:
        """The file."""
        values = {"schema_version": SCHEMA, **self._asdict()}
        return "".join(f'{name} = "{value}"\n' for name, value in values.items() if value is not None)


def read_pointer(source: str) -> Pointer:
    """The pointer in a file. Raises InputError."""
    try:
        table = parse_toml(files.read_small(Path(source)))
    except FileNotFoundError:
        raise refusal(source, "there is no such file", "check the path") from None
    except (OSError, ValueError) as error:
        raise refusal(source, str(error), _DO) from None
    known = f"known: {', '.join(sorted(_KEYS))}"
    problems = [Problem(name, "there is no such key", known) for name in sorted(table.keys() - _KEYS)]
    problems += [
        Problem(name, "it is missing, or no text", _DO)
        for name in sorted(_KEYS)
        if not isinstance(table.get(name), str) and (name != "key" or name in table)
    ]
    if not problems and table["schema_version"] != SCHEMA:
        problems.append(Problem("schema_version", f"it is {table['schema_version']}", f"this version reads {SCHEMA}"))
    for name, start in (("receipt", "sha256:"), ("digest", "")):
        if not problems and not _DIGEST.fullmatch(start + str(table[name])):
            problems.append(Problem(name, "this is no SHA-256", _DO))
    if problems:
        raise InputError(source, problems)
    return Pointer(*(table.get(name) for name in Pointer._fields))  # type: ignore[arg-type]  # each is checked above


def document(source: str) -> Document:
    """The receipt that a pointer names. Raises InputError where a byte is another, Unreachable, UsageError."""
    pointer, held = _followed(source)
    raw = held.get(f"receipts/{pointer.receipt}.json", b"")
    if verify.sha256(raw) != pointer.receipt:
        raise refusal(source, f"the bundle has no receipt {pointer.receipt[:12]}", _DO, "receipt")
    return Document(raw, source)


def evidence(source: str) -> Mapping[str, Path]:
    """The files of evidence in the bundle of a pointer, by their digests; they go when the program ends."""
    _, held = _followed(source)
    kept = {name.partition("/")[2]: content for name, content in held.items() if name.startswith("evidence/")}
    if not kept:
        return {}
    folder = Path(tempfile.mkdtemp(prefix="receipts-pointer-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    paths = {verify.sha256(content): folder / verify.sha256(content) for content in kept.values()}
    for content in kept.values():
        (folder / verify.sha256(content)).write_bytes(content)
    return paths


def _followed(source: str) -> tuple[Pointer, Mapping[str, bytes]]:
    """A pointer and the files of its bundle, each as the manifest lists it; with a key, as that signed them."""
    pointer = read_pointer(source)
    try:
        return pointer, _held(pointer, Path(source).parent)
    except verify.REFUSALS as error:
        do = "the bundle was changed, or the pointer is old; make it again: receipts pointer"
        raise refusal(source, f"the bundle is refused: {error}", do, "bundle") from None


@lru_cache(maxsize=4)
def _held(pointer: Pointer, beside: Path) -> Mapping[str, bytes]:
    """The files of a bundle. Raises what `fetched` does, and Refused."""
    raw = fetched(pointer.bundle, pointer.digest, beside)
    if (digest := f"sha256:{verify.sha256(raw)}") != pointer.digest:
        raise verify.Refused(f"{pointer.bundle} has {digest}")
    if digest == f"sha256:{pointer.receipt}":  # a receipt by itself
        return {f"receipts/{pointer.receipt}.json": raw}
    if pointer.key is not None:
        verify.check(raw, [verify.Key(pointer.key)])
    return verify.unpack(raw)


def pointer_to(raw: bytes, place: str, receipt: str | None, key: str | None) -> Pointer:
    """A pointer to a bundle, or to a receipt by itself. Raises UsageError where it is none, or of several."""
    digest = verify.sha256(raw)
    try:
        held: Any = verify.unpack(raw)
    except verify.Refused:
        held = {f"receipts/{digest}.json": raw} if raw.lstrip()[:1] == b"{" else {}
    ids = [match[1] for name in held if (match := re.fullmatch(r"receipts/([0-9a-f]{64})\.json", name))]
    chosen = [item for item in ids if item.startswith(receipt or "")]
    if len(chosen) != 1:
        known = ", ".join(item[:12] for item in ids[:10])
        raise UsageError(f"name one receipt of the bundle with --receipt: {known}" if ids else "this is not a bundle")
    if '"' in place or "\\" in place or not place.isprintable():
        raise UsageError(f"--at {place}: write a path, https://…, or oci://HOST/NAME:TAG")
    if key is not None:
        try:
            verify.check(raw, [verify.Key(key)])
        except verify.REFUSALS as error:
            raise UsageError(f"--key: {error}") from None
    return Pointer(chosen[0], f"sha256:{digest}", place, key)


def fetched(place: str, digest: str, beside: Path) -> bytes:
    """The bytes at a place; of a registry those of the layer with the digest. A path is relative to a folder.

    Raises NotFound, Unreachable, and UsageError for a place that is none.
    """
    if place.startswith("oci://"):
        match = _OCI.fullmatch(place)
        if match is None:
            raise UsageError(f"{place}: write oci://HOST/NAME:TAG or oci://HOST/NAME@sha256:…")
        host = match["host"]
        base = f"{'http' if _bare(host) in LOCAL else 'https'}://{host}/v2/{match['name']}"
        registry = _Registry(host, place)
        reference = match["digest"] or match["tag"] or "latest"
        raw = registry.get(f"{base}/manifests/{quote(reference, safe=':')}", {"Accept": MANIFEST}, MAX_MANIFEST)
        try:
            layers = [str(item["digest"]) for item in json.loads(raw)["layers"]]
        except (ValueError, LookupError, TypeError):
            raise NotFound(f"{place}: the registry has no OCI manifest there; push with oras 1.1 or newer") from None
        if digest not in layers:
            raise NotFound(f"{place}: it has no layer {digest}; it has {', '.join(layers[:5]) or 'none'}")
        return registry.get(f"{base}/blobs/{digest}", {}, MAX_BUNDLE)
    if "://" in place:
        try:
            return _get(place, {}, place)
        except _Asked:
            raise NotFound(f"{place}: 401, it asks for a login; give a place that everybody reads, or oci://") from None
    path = beside / Path(place).expanduser()
    try:
        with path.open("rb") as stream:
            return files.read_bounded(stream, MAX_BUNDLE)
    except OSError as error:
        raise NotFound(f"{path}: the bundle cannot be read ({error.strerror or error})") from None


class _Registry:
    """One registry; a token that it asked for is sent to it alone, and to nowhere that it redirects to."""

    def __init__(self, host: str, place: str) -> None:
        self._host, self._place, self._token = host, place, ""

    def get(self, url: str, headers: dict[str, str], most: int) -> bytes:
        """The answer, after a token where one is asked for."""
        try:
            return _get(url, {**headers, **self._authorization()}, self._place, most)
        except _Asked as asked:
            self._token = self._granted(asked.challenge)
            try:
                return _get(url, {**headers, **self._authorization()}, self._place, most)
            except _Asked:
                raise self._refused() from None

    def _authorization(self) -> dict[str, str]:
        return {"Authorization": self._token} if self._token else {}

    def _granted(self, challenge: str) -> str:
        """What to authorize with: a token of the realm that a challenge names, or the login itself."""
        login = _login(self._host)
        if challenge.lower().startswith("basic") and login:
            return f"Basic {login}"
        named = dict(_CHALLENGE.findall(challenge))
        realm = named.pop("realm", "")
        if not realm.startswith(("https://", "http://") if _bare(self._host) in LOCAL else "https://"):
            raise self._refused()
        query = urlencode([(name, named[name]) for name in ("service", "scope") if name in named])
        headers = {"Authorization": f"Basic {login}"} if login else {}
        try:
            granted: Any = json.loads(_get(f"{realm}?{query}", headers, self._place, MAX_MANIFEST))
            return f"Bearer {granted.get('token') or granted['access_token']}"
        except (_Asked, ValueError, LookupError, TypeError, AttributeError):
            raise self._refused() from None

    def _refused(self) -> UsageError:
        return UsageError(f"{self._place}: the registry refuses; log in with: oras login {self._host}")


class _Asked(Exception):
    """A place asks who it is."""

    def __init__(self, challenge: str) -> None:
        super().__init__(challenge)
        self.challenge = challenge


def _get(url: str, headers: dict[str, str], place: str, most: int = MAX_BUNDLE) -> bytes:
    """The body at a URL. Headers of authorization stay with the host: urllib sends them to no other."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname):
        raise UsageError(f"{place}: write a path, https://…, or oci://HOST/NAME:TAG")
    if parts.scheme == "http" and headers.get("Authorization") and parts.hostname not in LOCAL:
        raise UsageError(f"{place}: what authorizes would travel in the clear; write https://")
    request = Request(url, headers={"User-Agent": f"receipts/{__version__}"})
    for name, value in headers.items():
        request.add_unredirected_header(name, value) if name == "Authorization" else request.add_header(name, value)
    try:
        with urlopen(request, timeout=PATIENCE) as answer:
            return files.read_bounded(answer, most)
    except HTTPError as refused:
        with refused:
            if refused.code == 401:
                raise _Asked(refused.headers.get("WWW-Authenticate", "")) from None
            what = f"{place}: {refused.code} {refused.reason}"
            if may_answer_later(refused.code):
                raise Unreachable(f"{what}; try again later") from None
            login = refused.code == 403 and place.startswith("oci://")
            do = f"log in with: oras login {parts.netloc}" if login else "check the place in the pointer"
            raise NotFound(f"{what}; {do}") from None
    except (URLError, HTTPException, OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise Unreachable(f"{place}: no answer ({why}); check the address, or try again later") from None


def _login(host: str) -> str:
    """The user and password of a host in Docker's configuration, in base64; empty where there is none."""
    folder = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker")
    try:
        login = json.loads((folder / "config.json").read_bytes())["auths"][host]["auth"]
        base64.b64decode(login, validate=True)
        return str(login)
    except (OSError, ValueError, LookupError, TypeError):
        return ""


def _bare(host: str) -> str:
    return urlsplit(f"//{host}").hostname or ""
