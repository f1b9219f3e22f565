"""Join tokens and hosts at the desk: who is let in, and every reason why somebody is not."""

from __future__ import annotations

from typing import Any

import pytest

from spur.testing.builders import ADMIN, CLUSTER, Cluster, actor
from spur.values.errors import Rejection
from spur.values.ids import HostId, TokenId
from spur.wire.cluster import AddHost, ClusterInfo, RemoveHost, ShowCluster
from spur.wire.declare import Done
from spur.wire.joining import (
    CreateToken,
    HostCertified,
    JoinHost,
    ListTokens,
    RenewHost,
    RevokeToken,
    TokenCreated,
    TokenList,
)

NS = 1_000_000_000
LIFE_S = 3600

DIGEST = bytes([7]) * 32
KEY = bytes([1]) * 32
OTHER_KEY = bytes([2]) * 32


@pytest.fixture
def cluster() -> Cluster:
    """Yield a cluster of four nodes."""
    made = Cluster()
    made.configure()
    return made


def create(cluster: Cluster, **changes: Any) -> TokenId:
    """Create a token; return its id."""
    fields: dict[str, Any] = {"digest": DIGEST, "role": "compute", "nodes": (), "host": ""}
    answer = cluster.ask(CreateToken(**{**fields, "valid_s": 3600, **changes}))
    assert isinstance(answer, TokenCreated), answer
    return answer.token_id


def join(cluster: Cluster, **changes: Any) -> HostCertified | Rejection:
    """Let host n1 stand before the desk with the token."""
    fields: dict[str, Any] = {
        "digest": DIGEST,
        "name": "n1",
        "key": KEY,
        "role": "",
        "nodes": (),
        "clock_ns": cluster.now_ns,
        "life_s": LIFE_S,
    }
    answer = cluster.ask(JoinHost(**{**fields, **changes}), CLUSTER)
    assert isinstance(answer, HostCertified | Rejection)
    return answer


def refused(answer: object) -> tuple[str, str]:
    """Return code and text of a refusal."""
    assert isinstance(answer, Rejection), answer
    return answer.code, answer.text


def states(cluster: Cluster) -> list[str]:
    """Return the states of the tokens, as they are shown."""
    answer = cluster.ask(ListTokens())
    assert isinstance(answer, TokenList)
    return [token.state for token in answer.tokens]


def test_host_joins_once_with_its_token(cluster: Cluster) -> None:
    """A new compute node comes with its token; the token is used up in the same entry."""
    token_id = create(cluster)
    assert states(cluster) == ["valid"]
    before = cluster.state.index
    certified = join(cluster)
    assert isinstance(certified, HostCertified)
    assert cluster.state.index == before + 1
    assert (certified.role, certified.nodes) == ("compute", ("n1",))
    assert certified.ends_ns - certified.begins_ns == LIFE_S * NS
    row = cluster.state.hosts[certified.host_id]
    assert (row.name, row.role, row.key, row.ends_ns) == (
        "n1",
        "compute",
        KEY,
        certified.ends_ns,
    )
    assert cluster.state.tokens[token_id].used_by == "n1"
    assert states(cluster) == ["used"]


def test_lost_answer_is_given_again(cluster: Cluster) -> None:
    """The host's connection broke after the commit: it asks again with its key, even much later."""
    create(cluster, valid_s=60)
    first = join(cluster)
    index = cluster.state.index
    cluster.pass_seconds(7200)
    assert join(cluster, clock_ns=cluster.now_ns) == first
    assert cluster.state.index == index


@pytest.mark.parametrize("changes", [{"key": OTHER_KEY}, {"name": "n2"}])
def test_token_is_not_used_twice(cluster: Cluster, changes: dict[str, Any]) -> None:
    """Somebody copied the token and comes after the host that it was for."""
    token_id = create(cluster)
    join(cluster)
    assert refused(join(cluster, **changes)) == (
        "token-ended",
        f"token {token_id} was used by host 'n1', and lets nobody else in; the host did not join",
    )


def test_unknown_expired_and_revoked_tokens(cluster: Cluster) -> None:
    """A token of another cluster, one that lay about, and one that was taken back."""
    assert refused(join(cluster)) == (
        "unknown-token",
        "the cluster knows no such token; the host did not join",
    )
    token_id = create(cluster, valid_s=60)
    cluster.pass_seconds(90)
    assert refused(join(cluster)) == (
        "token-ended",
        f"token {token_id} expired 30 s ago; the host did not join",
    )
    assert states(cluster) == ["expired"]
    digest = bytes([8]) * 32
    revoked = create(cluster, digest=digest)
    assert cluster.ask(RevokeToken(revoked)) == Done()
    assert cluster.ask(RevokeToken(revoked)) == Done()
    assert refused(join(cluster, digest=digest)) == (
        "token-ended",
        f"token {revoked} was revoked; the host did not join",
    )


def test_token_for_another_host_role_or_nodes(cluster: Cluster) -> None:
    """A token is brought to a host, or for a purpose, that it was not made for."""
    token_id = create(cluster, host="n1", nodes=("n1",))
    assert refused(join(cluster, name="n2")) == (
        "not-permitted",
        f"token {token_id} is for host 'n1'; the signing request names 'n2'; the host did not join",
    )
    assert refused(join(cluster, role="login")) == (
        "not-permitted",
        f"token {token_id} is for a compute host, not a login host; the host did not join",
    )
    assert refused(join(cluster, nodes=("n2",))) == (
        "not-permitted",
        "the configuration does not give node 'n2' to this host; the host did not join",
    )
    other = bytes([9]) * 32
    create(cluster, digest=other, nodes=("n2", "n3"))
    code, text = refused(join(cluster, digest=other))
    assert code == "unknown-node"
    assert text == "the configuration gives host 'n1' no nodes of n[2-3]; the host did not join"
    assert refused(join(cluster, digest=other, name="-n1"))[0] == "invalid-value"


def test_nodes_are_those_that_the_configuration_gives() -> None:
    """One agent serves two nodes; its token is for one of them alone."""
    cluster = Cluster()
    cluster.configure(
        '[cluster]\nname = "hall"\n[[nodes]]\nnames = "n[1-3]"\ncpus = 4\nmemory_mib = 1000\n'
        'agent = "big"\n[[partitions]]\nname = "main"\nnodes = "n[1-3]"\n'
    )
    create(cluster, nodes=("n1", "n3"))
    code, text = refused(join(cluster, name="big", nodes=("n2",)))
    assert (code, text) == (
        "not-permitted",
        "the token is for nodes n[1,3], not for 'n2'; the host did not join",
    )
    certified = join(cluster, name="big")
    assert isinstance(certified, HostCertified)
    assert certified.nodes == ("n1", "n3")


def test_login_host_serves_no_nodes(cluster: Cluster) -> None:
    """A login host joins without nodes, and asks for none."""
    create(cluster, role="login")
    assert refused(join(cluster, nodes=("n1",)))[1].startswith("a login host serves no nodes")
    certified = join(cluster, name="front")
    assert isinstance(certified, HostCertified)
    assert (certified.role, certified.nodes) == ("login", ())


def test_host_whose_clock_is_wrong(cluster: Cluster) -> None:
    """A host's battery is empty: it believes in another time, before and after now."""
    create(cluster)
    answer = join(cluster, clock_ns=cluster.now_ns - 4000 * NS)
    assert refused(answer) == (
        "clock-step",
        "the host's clock is 4000 s behind the cluster's; the host did not join",
    )
    assert "ahead of" in refused(join(cluster, clock_ns=cluster.now_ns + 4000 * NS))[1]
    assert isinstance(join(cluster, clock_ns=cluster.now_ns + 200 * NS), HostCertified)


def test_name_of_a_member_is_not_taken_over(cluster: Cluster) -> None:
    """A new host comes under the name of one that is in the cluster, with a key of its own."""
    create(cluster)
    first = join(cluster)
    assert isinstance(first, HostCertified)
    other = bytes([8]) * 32
    create(cluster, digest=other)
    answer = join(cluster, digest=other, key=OTHER_KEY)
    assert refused(answer) == (
        "wrong-state",
        "host 'n1' is in the cluster already, as a member with another key; the host did not join",
    )
    assert isinstance(answer, Rejection)
    assert "spur host remove n1" in answer.hint
    admin = bytes([9]) * 32
    create(cluster, digest=admin, role="admin")
    assert "as a compute host" in refused(join(cluster, digest=admin))[1]
    again = join(cluster, digest=other)
    assert isinstance(again, HostCertified)
    assert again.host_id == first.host_id


def test_host_that_was_removed_needs_a_new_token(cluster: Cluster) -> None:
    """A host is taken out: neither its used token nor its certificate brings it back."""
    create(cluster)
    first = join(cluster)
    assert isinstance(first, HostCertified)
    assert cluster.ask(RemoveHost("n1")) == Done()
    assert refused(join(cluster))[1] == (
        "host 'n1' was removed since it joined; the host did not join"
    )
    renewal = RenewHost(first.host_id, "", KEY, LIFE_S)
    assert refused(cluster.ask(renewal, CLUSTER)) == (
        "unknown-host",
        f"host {first.host_id} was removed from the cluster; it gets no certificate",
    )
    other = bytes([8]) * 32
    create(cluster, digest=other)
    again = join(cluster, digest=other, key=OTHER_KEY)
    assert isinstance(again, HostCertified)
    assert again.host_id != first.host_id


def test_controllers_token_gives_no_host(cluster: Cluster) -> None:
    """A controller's id is given by the membership; its token is used up all the same."""
    token_id = create(cluster, role="controller")
    assert refused(join(cluster, name="c2")) == (
        "not-permitted",
        f"token {token_id} is for a controller, which says where it is to be reached;"
        " the host did not join",
    )
    certified = join(cluster, name="c2", role="controller")
    assert isinstance(certified, HostCertified)
    assert (certified.host_id, certified.role) == (0, "controller")
    assert join(cluster, name="c2", role="controller") == certified
    assert len(cluster.state.hosts) == 0
    assert states(cluster) == ["used"]


def test_certificate_is_renewed_with_another_key(cluster: Cluster) -> None:
    """Two thirds into its life a host asks for the next; asked again it is the same."""
    create(cluster)
    first = join(cluster)
    assert isinstance(first, HostCertified)
    cluster.pass_seconds(2400)
    renewal = RenewHost(first.host_id, "n1", OTHER_KEY, LIFE_S)
    second = cluster.ask(renewal, CLUSTER)
    assert isinstance(second, HostCertified)
    assert second.ends_ns > first.ends_ns
    assert cluster.state.hosts[first.host_id].key == OTHER_KEY
    index = cluster.state.index
    assert cluster.ask(renewal, CLUSTER) == second
    assert cluster.state.index == index
    shown = cluster.ask(ShowCluster())
    assert isinstance(shown, ClusterInfo)
    assert [host.ends_ns for host in shown.hosts] == [second.ends_ns]
    assert refused(cluster.ask(RenewHost(first.host_id, "n2", KEY, LIFE_S), CLUSTER)) == (
        "not-permitted",
        "the signing request names 'n2'; this is host 'n1'; it gets no certificate",
    )


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"digest": b"short"}, "the secret's hash is none, or known already"),
        ({"role": "king"}, "role 'king'; a host joins as one of compute, login, admin, controller"),
        ({"host": "a b"}, "'a b' is no host name"),
        ({"valid_s": 0}, "a token valid for 0 s; it takes 1 s to 30 days"),
        ({"valid_s": 31 * 86_400}, "it takes 1 s to 30 days"),
        ({"nodes": ("n9",)}, "node 'n9' is not configured"),
        ({"nodes": ("n1", "n1")}, "a node is named twice"),
        ({"nodes": ("n1",), "role": "admin"}, "an admin host serves no nodes"),
        ({"nodes": ("n1",), "host": "n2"}, "the configuration gives node 'n1' to host 'n1'"),
    ],
)
def test_token_that_makes_no_sense_is_not_created(
    cluster: Cluster, changes: dict[str, Any], what: str
) -> None:
    """An administrator mistypes something."""
    fields: dict[str, Any] = {"digest": DIGEST, "role": "compute", "nodes": (), "host": ""}
    answer = cluster.ask(CreateToken(**{**fields, "valid_s": 60, **changes}))
    code, text = refused(answer)
    assert code == "invalid-value"
    assert what in text
    assert text.endswith("; no token was created")


def test_same_secret_is_no_second_token(cluster: Cluster) -> None:
    """A client repeats a request under another id."""
    create(cluster)
    again = CreateToken(DIGEST, "login", (), "", 60)
    assert "known already" in refused(cluster.ask(again))[1]


def test_used_and_unknown_tokens_are_not_revoked(cluster: Cluster) -> None:
    """An administrator revokes a token too late, or mistypes its number."""
    token_id = create(cluster)
    join(cluster)
    code, text = refused(cluster.ask(RevokeToken(token_id)))
    assert (code, text) == (
        "token-ended",
        f"host 'n1' joined with token {token_id}; nothing was changed",
    )
    assert refused(cluster.ask(RevokeToken(TokenId(999))))[0] == "unknown-token"


def test_tokens_that_ended_long_ago_are_forgotten(cluster: Cluster) -> None:
    """Every now and then a token is created: those of last month go, the rest stay."""
    create(cluster, valid_s=60)
    cluster.pass_seconds(6 * 86_400)
    second = create(cluster, digest=bytes([8]) * 32)
    assert len(cluster.state.tokens) == 2
    cluster.pass_seconds(2 * 86_400)
    create(cluster, digest=bytes([9]) * 32)
    assert len(cluster.state.tokens) == 2
    assert second in cluster.state.tokens


@pytest.mark.parametrize(
    "request_",
    [
        CreateToken(DIGEST, "compute", (), "", 60),
        RevokeToken(TokenId(1)),
        ListTokens(),
    ],
)
def test_tokens_are_administrators_business(cluster: Cluster, request_: Any) -> None:
    """A user asks, and so does root of a login host."""
    login = actor(0, host_role="login", host_id=cluster.add_host("front", "login"))
    for who in (actor(1000), login):
        assert refused(cluster.ask(request_, who))[0] == "not-permitted"


@pytest.mark.parametrize(
    "request_",
    [
        JoinHost(DIGEST, "n1", KEY, "", (), 0, LIFE_S),
        RenewHost(HostId(1), "", KEY, LIFE_S),
    ],
)
def test_nobody_but_the_desk_lets_hosts_in(cluster: Cluster, request_: Any) -> None:
    """Even an administrator goes through the desk, where the key is proven."""
    create(cluster)
    assert refused(cluster.ask(request_, ADMIN))[0] == "not-permitted"


def test_certificate_of_an_enrolled_host_is_remembered(cluster: Cluster) -> None:
    """A host was set up on a controller; somebody looks when its certificates end."""
    now_ns = cluster.now_ns

    def ends() -> list[int]:
        shown = cluster.ask(ShowCluster(), actor(1000))
        assert isinstance(shown, ClusterInfo)
        return [host.ends_ns for host in shown.hosts if host.name == "n9"]

    cluster.ask(AddHost("n9", "compute"))
    assert ends() == [0]
    first = cluster.ask(AddHost("n9", "compute", KEY, now_ns + NS))
    assert ends() == [now_ns + NS]
    index = cluster.state.index
    assert cluster.ask(AddHost("n9", "compute", KEY, now_ns + NS)) == first
    assert cluster.state.index == index
    assert cluster.ask(AddHost("n9", "compute", OTHER_KEY, now_ns + 2 * NS)) == first
    assert ends() == [now_ns + 2 * NS]
    code, text = refused(cluster.ask(AddHost("n8", "compute", b"short", now_ns)))
    assert (code, text) == ("invalid-value", "a key's digest has 32 bytes; nothing was changed")
