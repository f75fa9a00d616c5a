"""Machines without a published matrix peak: they have tokens a second and step times, and no MFU."""

from __future__ import annotations

from receipts.receipt.accelerators.accelerator import Accelerator

M4_MAX = Accelerator(
    key="m4-max",
    names=("m4 max",),
    vendor="Apple",
    source="Apple, M4 Max announcement, October 2024: up to 40 GPU cores, up to 128 GB at 546 GB/s",
    bandwidth_bytes_per_second=546e9,
    fabric="none",
    no_peak="Apple publishes no FLOP/s for its GPUs; the figures in circulation are other people's estimates",
)

CPU = Accelerator(
    key="cpu",
    names=("cpu",),
    vendor="any",
    source="a class of machines and no product",
    no_peak="a processor's peak depends on model, cores and clock, none of which this name states",
)

HOST = (M4_MAX, CPU)
