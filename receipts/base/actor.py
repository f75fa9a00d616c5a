"""Who acts: what a store records about the actor of a submit, retraction, pin, decision, claim or purge.

An actor is a record and not a proof: what somebody may do is decided by the database's roles. No setting names it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

Kind = Literal["token", "database", "ci", "user"]

_LONGEST: Final = 200
# What a CI system says of the run that a process belongs to: the variables that have the repository and the run.
_CI: Final = {
    "github": ("GITHUB_REPOSITORY", "GITHUB_RUN_ID"),
    "gitlab": ("CI_PROJECT_PATH", "CI_JOB_ID"),
    "buildkite": ("BUILDKITE_PIPELINE_SLUG", "BUILDKITE_BUILD_ID"),
}


class Actor(NamedTuple):
    """Who acts: a token of a server, a user of a database, a run of a CI system, or a user of an operating system.

    `via` is what it acted through, where that is known as well: a database's user through a CI run.
    """

    kind: Kind
    name: str
    via: str = ""

    def __str__(self) -> str:
        """As a store records it: ``database:jobs via user:alice``; without control characters, 200 at most a part."""
        return f"{self.kind}:{_clean(self.name)}" + (f" via {_clean(self.via)}" if self.via else "")


def same_principal(one: str | None, other: str | None) -> bool:
    """Whether two recorded actors are one token, database user or user of a system; true where either is unknown."""
    return one is None or other is None or _principal(one) == _principal(other)


def _principal(actor: str) -> str:
    """Who answers for an actor: of a CI run, whose number a process claims, the user that it ran as."""
    return actor.rpartition(" via ")[2] if actor.startswith("ci:") else actor.partition(" via ")[0]


def this_process(environment: Mapping[str, str] = os.environ) -> Actor:
    """Who this process acts for: the CI run that it belongs to, else the operating system's user."""
    user = f"user:{_user()}"
    for system, names in _CI.items():
        repository, run = (environment.get(name) for name in names)
        if run:
            return Actor("ci", f"{system} {repository or 'unknown'} {run}", user)
    return Actor("user", _user())


def _user() -> str:
    # By the process's number and not by USER or LOGNAME, which anybody may set.
    try:
        import pwd

        return pwd.getpwuid(os.geteuid()).pw_name
    except ImportError:
        import getpass

        return getpass.getuser()
    except KeyError:
        return str(os.geteuid())


def _clean(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f]+", " ", text)[:_LONGEST]
