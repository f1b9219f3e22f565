"""What a new host checks before it shows its token to anybody."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spur.controller.authority import Authority
from spur.controller.join import Joining, check_desk, join
from spur.server.credentials import authority_digest
from spur.values.errors import OperatorFault
from spur.values.jointoken import JoinToken, format_join_token
from spur.wire.desk import DESK_VERSION, Desk

CLUSTER = bytes(range(16))
HOUR_NS = 3600 * 1_000_000_000


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Return a cluster's authority."""
    now = datetime.fromtimestamp(time.time(), UTC)
    return Authority.create(tmp_path / "authority", CLUSTER, now)


def desk(certificate: bytes, clock_ns: int) -> Desk:
    """Return what a controller says of itself."""
    return Desk(version=DESK_VERSION, cluster_id=CLUSTER, authority=certificate, clock_ns=clock_ns)


def test_controller_of_the_token_s_cluster_is_believed(authority: Authority) -> None:
    """The authority that is shown is the one whose fingerprint the token carries."""
    token = JoinToken(authority_digest(authority.certificate), bytes(32))
    check_desk(desk(authority.certificate, time.time_ns()), "h1:6816", token)


@pytest.mark.parametrize("certificate", [b"nonsense", None])
def test_somebody_in_between_is_not_shown_the_token(
    authority: Authority, certificate: bytes | None
) -> None:
    """Somebody answers in the controller's place, with an authority of their own or with none."""
    token = JoinToken(bytes(32), bytes(32))
    shown = authority.certificate if certificate is None else certificate
    with pytest.raises(OperatorFault) as refused:
        check_desk(desk(shown, time.time_ns()), "h1:6816", token)
    assert str(refused.value).startswith(
        "h1:6816 is no controller of the token's cluster: its authority has another fingerprint;"
        " the token was not shown"
    )


@pytest.mark.parametrize(("off_ns", "side"), [(-HOUR_NS, "ahead of"), (HOUR_NS, "behind")])
def test_clock_that_is_far_off_is_said_first(authority: Authority, off_ns: int, side: str) -> None:
    """The host's clock is an hour off: certificates would be refused for it, which says less."""
    token = JoinToken(authority_digest(authority.certificate), bytes(32))
    with pytest.raises(OperatorFault, match=rf"clock is 3[56]\d\d s {side} the controller's at h1"):
        check_desk(desk(authority.certificate, time.time_ns() + off_ns), "h1:6816", token)


CONTROLLER = {"raft_address": "h1:6821", "rpc_address": "h1:6816"}


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"token": "open sesame"}, "no join token"),
        ({"controllers": ()}, "no controller is named"),
        ({"controllers": ("h1",)}, "address 'h1'; an address is host:port"),
        ({"name": "a b"}, "'a b' is no host name"),
        ({"role": "king"}, "role 'king'"),
        ({"address": "n1"}, "address 'n1'; an address is host:port"),
        ({"raft_address": "h1:6821"}, "a controller has two addresses"),
        ({"settings": {"gpu": 8}}, "unknown key 'gpu'; did you mean 'gpus'"),
        ({"settings": {"gpus": "many"}}, "Expected `int`, got `str`"),
        ({"settings": {"gpus": 65}}, "gpus is 65; it must be 0 to 64"),
        ({"settings": {"nodes": "n1"}}, "'nodes' is no key to choose"),
        (CONTROLLER | {"settings": {"gpus": 8}}, "unknown key 'gpus'"),
        (CONTROLLER | {"settings": {"node_id": 8}}, "'node_id' is no key to choose"),
        (CONTROLLER | {"settings": {"disk_first_mark_mib": 1}}, "the second mark is the lower"),
    ],
)
def test_what_is_wrong_here_is_said_here(
    tmp_path: Path, changes: dict[str, object], what: str
) -> None:
    """A person mistypes something; nobody is asked, and nothing is made."""
    joining = Joining(
        directory=tmp_path / "a",
        name="n1",
        controllers=("127.0.0.1:1",),
        token=format_join_token(JoinToken(bytes(32), bytes(32))),
    )
    with pytest.raises(OperatorFault, match=what) as refused:
        join(joining._replace(**changes))  # type: ignore[arg-type]  # each is a field
    assert "nobody was asked" in str(refused.value)
    assert not (tmp_path / "a").exists()
