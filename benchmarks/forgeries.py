"""10,000 changes of a signed bundle, of its parts, of its envelopes and of its proofs: how many verify.

``python -m benchmarks forgeries``. The bundle compares the examples' launches on a CPU core; every change is checked by
`receipts/plugins/trust/verify.py`, as a stranger would. Needs the extra ``sign``, and openssl.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.result import Result

ROOT = Path(__file__).resolve().parents[1]
SIDES = ("label=cpu attention math*", "label=cpu attention flash*")


def measure(quick: bool) -> list[Result]:
    """How many changes of each kind verify; the bar is none."""
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    import forgeries
    from receipts.plugins.trust import verify

    kinds: dict[str, tuple[int, Callable[..., int]]] = {
        "bytes of a bundle": (3000, partial(forgeries.verified_bundles, of=forgeries.bundles)),
        "parts of a bundle": (3000, partial(forgeries.verified_bundles, of=forgeries.repacked)),
        "an envelope": (2000, forgeries.verified_envelopes),
        "a proof or checkpoint": (2000, forgeries.verified_proofs),
    }
    results = []
    with _bundle() as (raw, public):
        key = verify.Key(public)
        if not verify.check(raw, [key]):
            raise RuntimeError("the bundle itself does not verify")
        for name, (count, verified) in kinds.items():
            count = count // 20 if quick else count
            forged = verified(raw, key, count=count)
            results.append(Result(f"of {count:,} changes of {name}, verify", forged, "changes", bar=0, bar_on="value"))
    return results


@contextmanager
def _bundle() -> Iterator[tuple[bytes, str]]:
    """A bundle with signed and sealed receipts and three checkpoints, and the public key."""
    from receipts.cli import main

    with TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["RECEIPTS_STORE"] = str(folder / "store.sqlite")
        key, log, bundle = (str(folder / item) for item in ("ana", "log.txt", "x.tar"))
        examples = sorted(str(path) for path in (ROOT / "examples" / "cpu").glob("*.json"))
        third = len(examples) // 3
        calls = [["key", "new", "ana", "--out", key], ["key", "trust", "ana", f"{key}.pub"]]
        for part in (examples[:third], examples[third : 2 * third], examples[2 * third :]):
            calls += [["submit", *part, "--sign", key], ["audit", "--seal", "--publish", log, "--sign", key]]
        calls += [["bundle", *SIDES, "--sign", key, "--checkpoints", log, "--output", bundle]]
        for words in calls:
            with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
                code = main(words)
            if code not in (0, 1, 3) or (words[0] == "bundle" and code):
                raise RuntimeError(f"{words}: {out.getvalue()}{err.getvalue()}")
        yield (folder / "x.tar").read_bytes(), (folder / "ana.pub").read_text()
