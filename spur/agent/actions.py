"""What an agent's machine tells its shell to do, and what the shell then says.

Each is done in its order, and performed once.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from spur.agent.manifest import AttemptName, Launch
from spur.values.ids import NodeName

__all__ = [
    "Action",
    "Admit",
    "Forget",
    "Fork",
    "Hold",
    "Kill",
    "Notify",
    "Prepare",
    "Say",
    "Send",
    "Signal",
    "Steer",
    "Sweep",
    "TakeClaim",
    "Watch",
]


class Prepare(msgspec.Struct, frozen=True, gc=False):
    """Write the manifest and sync it; then call `prepared` or `not_prepared`."""

    name: AttemptName
    order: Launch
    incarnation: int
    term: int
    index: int


class Fork(msgspec.Struct, frozen=True, gc=False):
    """Have a supervisor forked; then call `forked` or `not_forked`."""

    name: AttemptName


class Watch(msgspec.Struct, frozen=True, gc=False):
    """Watch the supervisor that holds the lock; call `gone` when it does no more."""

    name: AttemptName


class TakeClaim(msgspec.Struct, frozen=True, gc=False):
    """Take the claim, synced, for nobody; then call `voided`, or `not_voided` and try again."""

    name: AttemptName
    incarnation: int


class Kill(msgspec.Struct, frozen=True, gc=False):
    """Tell a supervisor to end what it runs; one that can't be told is killed itself."""

    name: AttemptName
    state: str
    """What it will be recorded as, of `JobState` or `StepState`."""
    kill_wait_s: int


class Signal(msgspec.Struct, frozen=True, gc=False):
    """Tell a supervisor to send a signal, once."""

    name: AttemptName
    signal: int
    mains_only: bool
    """To the script or the tasks alone, not to what they started."""
    index: int
    """Of the entry that says so."""


class Notify(msgspec.Struct, frozen=True, gc=False):
    """Tell a supervisor to say something, once."""

    name: AttemptName
    text: bytes
    index: int
    """Of the entry that says so."""


class Steer(msgspec.Struct, frozen=True, gc=False):
    """Tell a supervisor how to go on."""

    name: AttemptName
    paused: bool
    limit_ns: int
    index: int
    """Of the entry that says so."""


class Admit(msgspec.Struct, frozen=True, gc=False):
    """Let in who opens a stream with this key."""

    name: AttemptName
    key_digest: bytes


class Sweep(msgspec.Struct, frozen=True, gc=False):
    """Kill what a dead supervisor left; then call `swept`."""

    name: AttemptName


class Send(msgspec.Struct, frozen=True, gc=False):
    """The node may have something to report: go on with `next_report` unless one is on its way."""

    node: NodeName


class Hold(msgspec.Struct, frozen=True, gc=False):
    """Wait for the order for a step's run; after a while call `not_held`."""

    name: AttemptName


class Forget(msgspec.Struct, frozen=True, gc=False):
    """All is told: remove the directory after a while, then call `forget`."""

    name: AttemptName


class Say(msgspec.Struct, frozen=True, gc=False):
    """Put a sentence into the log."""

    text: str


Action: TypeAlias = (
    Prepare
    | Fork
    | Watch
    | TakeClaim
    | Kill
    | Signal
    | Steer
    | Notify
    | Admit
    | Sweep
    | Send
    | Hold
    | Forget
    | Say
)
