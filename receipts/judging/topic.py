"""What a rule speaks of, where the engine treats all findings on one topic alike, whichever rule made them."""

from __future__ import annotations

from enum import StrEnum


class Topic(StrEnum):
    """The topics that some part of the engine asks for. Most rules have none."""

    AXES = "axes"  # the settings that changed: a comparison names them once, ahead of all else
    UNKNOWN = "unknown"  # settings that are not stated: they are listed together
    SIDES = "sides"  # quotes what rules find on the receipt of one side
    EFFECT = "effect"  # judges the computed effect itself, and so does not take its name away
    STALLS = "stalls"  # typical step and throughput part: the first line names both
    LAYOUT = "layout"  # a layout that no launch can have, read from a plan as well
    EVIDENCE = "evidence"  # the evidence of the path that a lane asks for
    WITNESS = "witness"  # why a path stays open although a launch witnesses it: shown even where it weighs nothing
    INCIDENT = "incident"  # changes which system a number belongs to; on the effect, steps that do not settle
    FAILURE = "failure"  # earlier launches that failed alike
    RECEIPTS = "receipts"  # receipts that a claim does not have: nothing speaks against it, nothing for it
    TARGET = "target"  # where a claim has to hold: what a retest at its target settles
    STALENESS = "staleness"  # what supports a claim has changed since: it is stale, whatever else it is
