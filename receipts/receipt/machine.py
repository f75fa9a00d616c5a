"""Sections ``code``, ``hardware`` and ``platform``: what ran on what."""

from receipts.receipt.leaf import Digest, Name, Positive, Section, axis, note


class Code(Section):
    """The source that was imported. The digest decides; commit and repository serve people and as a fallback."""

    repository: Name | None = note("Repository of the main script.")
    commit: Name | None = axis("Commit id.", of="code")
    dirty: bool | None = axis("Whether the work tree had uncommitted changes.", of="code")
    imported_digest: Digest | None = axis("SHA-256 over the files that were imported.", of="code")


class Hardware(Section):
    """The machine. `topology` is one axis: chips, hosts, shape and fabric come together."""

    accelerator: Name | None = axis("Accelerator, by a name that the registry knows.")
    chips: Positive | None = axis("Number of chips in the launch.", of="topology")
    hosts: Positive | None = axis("Number of hosts in the launch.", of="topology")
    physical: Name | None = axis("Physical shape of the slice or node, such as `2x4`.", of="topology")
    interconnect: Name | None = axis("Fabric between the chips.", of="topology")


class Platform(Section):
    """The software below the wheels. One axis, with its members listed."""

    os: Name | None = axis("Operating system and kernel.", of="platform")
    driver: Name | None = axis("Accelerator driver.", of="platform")
    cuda: Name | None = axis("CUDA runtime.", of="platform")
    cudnn: Name | None = axis("cuDNN as loaded.", of="platform")
    nccl: Name | None = axis("NCCL as loaded.", of="platform")
    libtpu: Name | None = axis("libtpu as loaded.", of="platform")
    python: Name | None = axis("Python.", of="platform")
