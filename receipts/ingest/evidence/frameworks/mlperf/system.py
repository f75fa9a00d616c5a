"""The description of a system: ``:::SYSJSON`` in a log, ``systems/NAME.json`` of a results repository.

Source: mlcommons/training_policies (submission rules, system description). Numbers are often texts, and a field that
its author left open is an empty text.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

from receipts.ingest.evidence.frameworks.mlperf.records import integer
from receipts.ingest.reader import JsonReader
from receipts.ingest.reading import Reading

_PLATFORM: Final = {
    "cuda_version": "platform.cuda",
    "cuda": "platform.cuda",
    "nvidia_kernel_driver": "platform.driver",
    "cuda_driver_version": "platform.driver",
    "amdgpu_kernel_driver": "platform.driver",
    "nccl_version": "platform.nccl",
    "nccl": "platform.nccl",
    "cudnn_version": "platform.cudnn",
    "cudnn": "platform.cudnn",
    "libtpu": "platform.libtpu",
    "python": "platform.python",
    "python_version": "platform.python",
}
# Versions of what is no wheel and moves no step.
_PASSED_OVER: Final = frozenset({"kernel_version", "mofed_version", "openmpi_version", "dali_version", "trt_version"})
_NAME: Final = re.compile(r"[a-z][a-z0-9_.\-]{0,60}")
_NOTHING: Final = frozenset({"", "n/a", "na", "none", "unknown", "-", "tbd"})
# Loops by a word of the text; a text that names several says which of them the submitter used anywhere.
_LOOPS: Final = {
    "maxtext": "maxtext",
    "maxdiffusion": "maxdiffusion",
    "nemo": "nemo",
    "megatron(?:-lm)?": "megatron-lm",
    "primus": "primus",
    "torchtitan": "torchtitan",
    "hugectr": "hugectr",
    "dgl": "dgl",
    "mxnet": "mxnet",
    "tinygrad": "tinygrad",
}
_RELEASE: Final = re.compile(r"Release (\d\d\.\d\d)")
_TORCH: Final = re.compile(r"\bPyTorch[ =v]{1,3}([12]\.\d+[\w.+]{0,40})", re.IGNORECASE)  # 24.09 is a container
MAX_TEXT: Final = 200


def describe(reading: Reading, description: dict[str, Any], line: int = 0) -> None:
    """State what a description says of hardware and software; the first value of a leaf stands."""
    hosts, each = (integer(description.get(name)) for name in ("number_of_nodes", "accelerators_per_node"))
    if hosts:
        reading.state("hardware.hosts", hosts, f"number_of_nodes {hosts}", line)
    if hosts and each:
        reading.state("hardware.chips", hosts * each, f"{hosts} nodes of {each} accelerators", line)
    for name, path in (
        ("accelerator_model_name", "hardware.accelerator"),
        ("operating_system", "platform.os"),
    ):
        if text := _text(description.get(name)):
            reading.state(path, text, f"{name} {text}", line)
    _framework(reading, _text(description.get("framework")), line)
    stack = description.get("other_software_stack")
    for part in stack if isinstance(stack, list) else [stack]:
        for name, version in part.items() if isinstance(part, dict) else ():
            _software(reading, str(name).strip().lower(), _text(version), line)
        if text := _text(part):
            reading.state("features.software_stack", text, f"other_software_stack {text}", line)


def _framework(reading: Reading, text: str, line: int) -> None:
    """State the loop that a description names, where it names one, and the release of torch or NVIDIA's container."""
    named = {name for word, name in _LOOPS.items() if re.search(rf"\b{word}\b", text, re.IGNORECASE)}
    if len(named) == 1:
        reading.state("path.intended.framework", named.pop(), f"framework {text}", line)
    if torch := _TORCH.search(text):
        reading.state("wheels.torch", torch[1], f"framework {text}", line)
    releases = set(_RELEASE.findall(text))
    if len(releases) == 1 and reading.source != "mlperf-system":
        reading.state("wheels.nvidia-release", releases.pop(), f"framework {text}", line)


def _software(reading: Reading, name: str, version: str, line: int) -> None:
    if not version or name in _PASSED_OVER:
        return
    path = _PLATFORM.get(name)
    if path is None and _NAME.fullmatch(name):
        path = f"wheels.{name.removesuffix('_version').replace('pytorch', 'torch')}"
    if path is not None and path not in reading.stated:
        reading.state(path, version, f"{name} {version}", line)


def _text(value: Any) -> str:
    text = value.strip()[:MAX_TEXT] if isinstance(value, str) else ""
    return "" if text.lower() in _NOTHING or text.startswith("UNKNOWN_MLPERF") else text


class MlperfSystem(JsonReader):
    """Reads ``systems/NAME.json``, which people wrote and the submission's reviewers read."""

    source: ClassVar[str] = "mlperf-system"
    what: ClassVar[str] = "a system description"
    marks = (b'"accelerator_model_name"', b'"accelerators_per_node"')

    def take(self, reading: Reading, document: dict[str, Any]) -> None:
        """The hardware and the software that it names."""
        reading.records = 1
        describe(reading, document)
