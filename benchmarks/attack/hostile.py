"""Files and words that break programs: deep, long, endless, packed a thousandfold, of another kind than their names."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import sqlite3
import tarfile
import zipfile
from pathlib import Path
from typing import Final

WORDS: Final = (
    *("", " ", "-", "--", "---x", "-1", "0", "1e999", "nan", "inf", "99999999999999999999", "0.1%", "-5%", "\u0663"),
    *(
        "@",
        "@golden",
        "@no",
        "label=*",
        "label=",
        "label=[",
        "a,b",
        ",",
        "=",
        "x=",
        "=x",
        "a=b=c",
        "lane=*",
        "chips>=x",
    ),
    *(
        "chips>=99999999999999999999",
        "run.label=[",
        "no.such.leaf=1",
        "batch.micro_batch=2",
        "flags.X=1",
        "*",
        "%",
        "_",
    ),
    *("2026-13-45", "2026-W99", "9999-12-31T23:59:60Z", "0001-01-01", "7d", "999999999d", "1970", "now", "2026-W01-8"),
    *(
        "http://127.0.0.1:1",
        "http://[",
        "http://h:99999",
        "https://u:p@h/",
        "sqlite://",
        "postgresql://x:1/y",
        "s3://a",
    ),
    *("../../x", "/dev/full", "a" * 5000, "\u202e", "\x1b[2J", "é", "0" * 64, "deadbeef", "cpu-torch", "R301", "R999"),
    *(
        "step_seconds",
        "mfu",
        "tokens_per_second",
        "(a+)+$",
        "[",
        "(?P<x",
        "\\",
        "{",
        "[1,2",
        "null",
        "true",
        "[[[[[[[[",
    ),
    *("nvidia-megatron", "cpu-torch@99", "attention", "model.layers=-1", "memory.chips=[]", "data=0", "tensor=1e9"),
)
_DEEP: Final = 50_000


def files(folder: Path, examples: Path) -> list[Path]:
    """Write the files into a folder; gives them with the devices and folders that stand beside them."""
    receipt = (examples / "cpu" / "attention-flash-1.json").read_bytes()
    tree = json.loads(receipt)
    texts: dict[str, bytes] = {
        "empty.json": b"",
        "deep.json": b"[" * _DEEP,
        "deep-object.json": b'{"a":' * _DEEP,
        "deep.toml": b"a = " + b"[" * _DEEP,
        "deep.yaml": b"wandb_version: 1\na: " + b"[" * _DEEP,
        "laughs.yaml": b"wandb_version: 1\na0: &a0 [x,x,x,x,x,x,x,x,x]\n"
        + b"".join(b"a%d: &a%d [%s]\n" % (at, at, b",".join([b"*a%d" % (at - 1)] * 9)) for at in range(1, 12)),
        "cell.csv": b"a,b\n1," + b"x" * 200_000 + b"\n",
        "wide.csv": b"step," * 100_000,
        "line.log": b"iteration " + b"9" * 3_000_000,
        "nul.log": b"\x00" * 1_000_000,
        "noise.bin": os.urandom(300_000),
        "utf16.json": receipt.decode().encode("utf-16"),
        "cut.json": receipt[: len(receipt) // 2],
        "list.json": b"[" + receipt + b"]",
        "lines.jsonl": b"\n".join([json.dumps(tree).encode()] * 3) + b"\n{\n[]\n1\n",
        "chips.json": json.dumps({**tree, "hardware": {**tree["hardware"], "chips": 10**9}}).encode(),
        "label.json": json.dumps({**tree, "run": {**tree["run"], "label": "\x1b[31m<b>" * 99}}).encode(),
        "plan.json": (examples / "fit" / "dense-full-64-wide.plan.json").read_bytes(),
        "claims.toml": b'[[claim]]\nid = "a"\ntext = "b"\nkind = "speedup"\nbaseline = ["@x"]\ncandidate = ["*"]\n',
        "odd-claims.toml": b'claim = 1\n[[x]]\n"\\u0000" = nan\n',
        "table.md": b"| a | b |\n|---|---|\n" + b"| 1.5x faster | `R301` |\n" * 5000 + b"|" * 100_000,
        "words.md": b"MFU of 43.1% at 1e999 tok/s, 2x faster [x](receipt:" + b"(" * 50_000,
        "noise.db": b"SQLite format 3\x00" + os.urandom(8192),
        "noise.parquet": b"PAR1" + os.urandom(4096) + b"PAR1",
        "noise.journal": b"RCPTJRNL" + os.urandom(4096),
        "part.part.json": b'{"receipts_part": 1, "launch": [], "rank": 1e9, "receipt": []}',
    }
    for name, content in texts.items():
        (folder / name).write_bytes(content)
    _packed(folder)
    with (folder / "sparse.log").open("wb") as stream:
        stream.truncate(1 << 30)
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to("loop")
    shutil.copy(examples / "cpu" / "attention-math-1.json", folder / "good.json")
    with sqlite3.connect(folder / "other.sqlite") as other:
        other.execute("CREATE TABLE receipts (seq INTEGER)")
    other.close()
    devices = [Path("/dev/zero"), Path("/dev/null"), Path("/proc/self/mem"), folder / "missing.json"]
    return [*sorted(folder.iterdir()), *devices, folder / ("n" * 300)]


def _packed(folder: Path) -> None:
    zeros = b"\x00" * (1 << 20)
    with gzip.open(folder / "bomb.log.gz", "wb", compresslevel=9) as stream:
        for _ in range(300):
            stream.write(zeros)
    (folder / "cut.log.gz").write_bytes((folder / "bomb.log.gz").read_bytes()[:1000])
    with (
        zipfile.ZipFile(folder / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a.json", "w") as member,
    ):
        for _ in range(300):
            member.write(zeros)
    with tarfile.open(folder / "climbs.tar.gz", "w:gz") as tar:
        item = tarfile.TarInfo("../../../climbed.json")
        item.size = 2
        tar.addfile(item, io.BytesIO(b"{}"))
