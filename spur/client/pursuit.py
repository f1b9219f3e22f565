"""One request until its outcome is known: whom to ask, when to ask again, when to give up.

No IO here: the asynchronous client and the blocking one ask the same `Pursuit` what to do next.

    address()      ask this one
    lost(...)      it could not be reached, or the connection ended before the reply
    judge(reply)   the outcome, or None: wait `pause_s`, ask `address()` again
    give_up()      the fault to raise once the deadline has passed

Every try carries the same id and the same `since`, so it is carried out at most once whichever
replica it reaches (LOG-CONTRACT 3.5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spur.client.address import Address, TcpAddress, parse_tcp_address
from spur.client.faults import OutcomeUnknown, Unreachable
from spur.values.errors import Rejection, SpurError
from spur.wire.calls import (
    REQUEST_BYTES_MAX,
    WIRE_VERSION,
    Answered,
    Call,
    Goodbye,
    Refused,
    Reply,
    Welcome,
)
from spur.wire.hello import parse_host_name

__all__ = ["Cluster", "Pursuit"]

_PAUSE_FIRST_S = 0.02
_PAUSE_S_MAX = 0.1
"""Between two looks for a leader; an election takes 0.3 to 0.6 s."""

_BUSY_PAUSE_S_MAX = 0.5
"""Between two tries at a leader that has too much to do."""

_PATIENT_PART = 0.1
_PATIENT_PAUSE_S_MAX = 1.0
"""Who has waited long waits a tenth of that between two tries: agents that have no leader for
minutes are no load on the controllers that are left."""

_DISTRUSTED_MAX = 6
"""Hints at a leader that we lost, of which nobody else does; an election is over by then."""

_HOPS_MAX = 4
"""Hints followed without a pause; replicas that do not know yet send each other's address."""

_FINAL_GOODBYES = frozenset(("protocol", "foreign-peer"))
"""Goodbyes that the same client will hear again from the same replica."""


class Cluster:
    """What a client knows of its cluster, kept over all its requests."""

    def __init__(self, addresses: Sequence[Address], *, cluster_id: bytes, has_tls: bool) -> None:
        """Take the replicas' addresses; an empty cluster id takes the one that answers first.

        Raises: ValueError without an address that can be used.
        """
        self._has_tls = has_tls
        self.addresses = self._usable(addresses)
        self.cluster_id = cluster_id
        self.incarnation = 0
        self.index = 0
        """With `incarnation`, the highest position that an answer has shown."""
        self.preferred: Address = self.addresses[0]
        """Whom to ask first: whoever answered last, or is said to lead."""

    def know(self, addresses: Sequence[Address]) -> None:
        """Take other addresses in place of those that are known. Raises: as the constructor."""
        self.addresses = self._usable(addresses)

    def _usable(self, addresses: Sequence[Address]) -> list[Address]:
        usable = [a for a in addresses if self._has_tls or not isinstance(a, TcpAddress)]
        if not usable:
            raise ValueError(
                "no address to ask: give a Unix socket of a controller, or host:port with the"
                " files of a certificate"
            )
        return usable

    def judge_host(self, names: tuple[str, ...]) -> str | None:
        """Return why a certificate's names are refused, or None: a controller of this cluster."""
        host = parse_host_name(names[0]) if len(names) == 1 else None
        shown = " and ".join(names) or "nobody"
        if host is None or host.role != "controller":
            return f"its certificate names {shown}, which is no controller"
        if self.cluster_id not in (b"", host.cluster_id):
            return f"its certificate is of cluster {host.cluster_id.hex()}, not of ours"
        return None

    def judge_welcome(self, welcome: Welcome) -> str | None:
        """Return why a replica's welcome is refused; None, and learn from it, otherwise."""
        if welcome.version != WIRE_VERSION:
            return f"it speaks version {welcome.version} of the wire; this client {WIRE_VERSION}"
        if self.cluster_id not in (b"", welcome.cluster_id):
            return f"it belongs to cluster {welcome.cluster_id.hex()}, not to ours"
        self.cluster_id = welcome.cluster_id
        self.learn(welcome.incarnation, welcome.index)
        return None

    def learn(self, incarnation: int, index: int) -> None:
        """Remember a position if it is higher than the known one."""
        if (incarnation, index) > (self.incarnation, self.index):
            self.incarnation, self.index = incarnation, index

    def address_of(self, leader: str) -> Address | None:
        """Return the address that a hint names; None for one that we can't ask."""
        try:
            return parse_tcp_address(leader) if self._has_tls else None
        except ValueError:
            return None

    def rotate(self, after: Address) -> None:
        """Prefer the address that follows this one in the list."""
        addresses = self.addresses
        place = addresses.index(after) + 1 if after in addresses else 0
        self.preferred = addresses[place % len(addresses)]


class Pursuit:
    """One request over all its tries."""

    def __init__(
        self,
        cluster: Cluster,
        request: bytes,
        request_id: bytes,
        *,
        since: int | None,
        speaks_for: tuple[int, int] | None,
        seen: tuple[int, int] = (0, 0),
        warn: Callable[[str], None] | None = None,
    ) -> None:
        """Prepare; without `warn` an answer that no quorum stands behind is none.

        `seen` is an (incarnation, index) that this caller has been shown.
        """
        self.pause_s = 0.0
        """How long to wait before the next try."""
        self._cluster = cluster
        self._request = request
        self._id = request_id
        self._since = since
        self._speaks_for = speaks_for
        self._seen = seen
        self._warn = warn
        self._open = 0
        """Tries whose reply has not come, or left the outcome open."""
        self._hops = 0
        self._next_pause_s = _PAUSE_FIRST_S
        self._waited_s = 0.0
        """The pauses so far."""
        self._lost: dict[Address, str] = {}
        self._silent: set[Address] = set()
        """Those that were lost; others may still take one of them for the leader."""
        self._distrusted = 0
        """Hints at one of these that were not followed."""
        self._final: set[Address] = set()
        self._last = ""

    def too_long(self) -> Rejection | None:
        """Return the refusal of a request that no replica would read."""
        size = len(self._request)
        if size <= REQUEST_BYTES_MAX:
            return None
        return Rejection(
            "limit-exceeded",
            f"a request of {size} bytes; at most {REQUEST_BYTES_MAX} are taken; nothing was sent",
        )

    def address(self) -> Address:
        """Return whom to ask next."""
        return self._cluster.preferred

    def call(self, number: int) -> Call:
        """Return the call to send to a replica that has been welcomed."""
        cluster = self._cluster
        if self._since is None:
            self._since = cluster.index
        self._open += 1
        incarnation, index = max(self._seen, (cluster.incarnation, cluster.index))
        return Call(
            number=number,
            request_id=self._id,
            since=self._since,
            incarnation=incarnation,
            at_least=index,
            speaks_for=self._speaks_for,
            request=self._request,
        )

    def lost(self, address: Address, sentence: str, goodbye: Goodbye | None = None) -> None:
        """Take note that a replica could not be asked, or ended the connection unasked."""
        self._last = f"{address}: {sentence}"
        self._lost[address] = sentence
        if goodbye is not None and goodbye.code in _FINAL_GOODBYES:
            self._final.add(address)
        self._silent.add(address)
        self._turn_from(address)
        self._hops = 0
        if len(self._lost) >= len(self._cluster.addresses):
            self._wait(_PAUSE_S_MAX)
            self._lost.clear()
        else:
            self.pause_s = 0.0

    def judge(self, address: Address, reply: Reply) -> Answered | Rejection | None:
        """Return the outcome, or None when the request must be asked again.

        Raises: OutcomeUnknown when the replicas have forgotten what became of an earlier try.
        """
        cluster = self._cluster
        cluster.learn(reply.incarnation, reply.index)
        outcome = reply.outcome
        self._lost.clear()
        if isinstance(outcome, Answered):
            return self._take(address, outcome, reply.warning)
        self._last = f"{address}: {outcome.text}"
        if outcome.code == "ask-again":
            self._wait(_PAUSE_S_MAX)
            return None
        self._open -= 1
        match outcome.code:
            case "not-leader":
                self._follow(address, outcome)
            case "busy" | "history-behind":
                self._wait(_BUSY_PAUSE_S_MAX)
            case "outcome-unknown" if self._open:
                raise self._unknown(outcome.text)
            case _:
                cluster.preferred = address
                return Rejection(outcome.code, outcome.text, outcome.hint)
        return None

    @property
    def is_open(self) -> bool:
        """Whether some replica may be carrying the request out."""
        return self._open > 0

    def is_hopeless(self) -> bool:
        """Return whether every address has refused us for good, with the request sent to none."""
        return not self._open and self._final.issuperset(self._cluster.addresses)

    def give_up(self, waited_s: float) -> SpurError:
        """Return the fault of a request whose time is over."""
        why = self._last or "no answer"
        if not self._open:
            return Unreachable(
                f"no controller took the request in {waited_s:.3g} s ({why}); nothing was done"
            )
        return self._unknown(f"no outcome in {waited_s:.3g} s ({why})")

    # -- inside

    def _take(self, address: Address, answered: Answered, warning: str) -> Answered | None:
        """Return an answer; None for one with a warning that the caller did not ask to be told."""
        cluster = self._cluster
        if warning and self._warn is None:
            self._last = f"{address}: {warning}"
            self._open -= 1
            cluster.rotate(address)
            self._wait(_PAUSE_S_MAX)
            return None
        if warning and self._warn is not None:
            self._warn(warning)
        cluster.preferred = address
        return answered

    def _follow(self, address: Address, refused: Refused) -> None:
        """Ask the leader that a replica names; wait when hints lead nowhere.

        A follower takes a leader for one until an election time-out after its last word. Where we
        heard nothing ourselves we wait for that, rather than to ask there again.
        """
        cluster = self._cluster
        self._hops += 1
        hint = cluster.address_of(refused.leader)
        if hint in self._silent and self._distrusted < _DISTRUSTED_MAX:
            self._distrusted += 1
            self._turn_from(address)
            self._wait(_PAUSE_S_MAX)
            return
        if hint is None:
            self._turn_from(address)
        else:
            self._silent.discard(hint)
            self._distrusted = 0
            cluster.preferred = hint
        if (refused.leader and self._hops <= _HOPS_MAX) or self._hops < len(cluster.addresses):
            self.pause_s = 0.0
        else:
            self._hops = 0
            self._wait(_PAUSE_S_MAX)

    def _turn_from(self, address: Address) -> None:
        """Prefer the next address at which somebody may be heard; the next of all if none may."""
        cluster = self._cluster
        cluster.rotate(address)
        for _ in cluster.addresses:
            if cluster.preferred not in self._silent:
                return
            cluster.rotate(cluster.preferred)
        cluster.rotate(address)

    def _wait(self, longest_s: float) -> None:
        patient_s = min(_PATIENT_PART * self._waited_s, _PATIENT_PAUSE_S_MAX)
        self.pause_s = min(self._next_pause_s, max(longest_s, patient_s))
        self._next_pause_s = 2 * self.pause_s
        self._waited_s += self.pause_s

    def _unknown(self, why: str) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"{why}; the request may have been carried out or not; asking again with the same id"
            " is safe",
            self._id,
            self._since or 0,
        )
