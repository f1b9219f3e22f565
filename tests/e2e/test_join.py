"""A host joins: an administrator makes a token, the new host uses it, its agent serves."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from spur.client.address import parse_tcp_address
from spur.client.blocking import BlockingClient
from spur.client.desk import ask_desk
from spur.client.tls import client_context, credentials_in, joining_context, validity_of
from spur.consensus.disk import OsDisk
from spur.consensus.genesis import load_genesis
from spur.controller.authority import Authority
from spur.controller.birth import AUTHORITY_DIRECTORY, TLS_DIRECTORY
from spur.controller.desk import STRANGERS_MAX
from spur.server.credentials import (
    key_pem,
    make_key,
    make_signing_request,
    verify_certificate,
    write_credentials,
)
from spur.testing.agentprocess import AgentProcess
from spur.testing.controllers import ControllerProcess, Controllers
from spur.testing.errands import configure, info, jobs, submit_many, until
from spur.values.errors import Rejection
from spur.values.ids import NodeName
from spur.values.jointoken import JoinToken, format_join_token, parse_join_token
from spur.wire.calls import Greeting, encode
from spur.wire.cluster import ClusterInfo, RemoveHost, ShowCluster
from spur.wire.controllers import ControllerList, ShowControllers
from spur.wire.declare import Done
from spur.wire.desk import (
    DESK_VERSION,
    AskToJoin,
    AskToRenew,
    Certified,
    Knock,
    encode_desk,
)
from spur.wire.frames import encode_frames
from spur.wire.nodes import ListNodes, NodeList

MAIN = "import sys; from spur_cli.main import main; sys.exit(main())"

LIFE_S = 9
"""Of certificates that are renewed three seconds later, with six to spare on a busy machine."""


@pytest.fixture(scope="module")
def controllers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controllers]:
    """Yield a running cluster of three with four nodes configured."""
    made = Controllers.create(tmp_path_factory.mktemp("join"), 3, first_port=25400)
    made.start()
    with made.blocking() as client:
        configure(client)
    yield made
    made.stop()


def spur(
    *words: str, stdin: str = "", environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command as a person would."""
    return subprocess.run(
        [sys.executable, "-c", MAIN, *words],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **(environment or {})},
        check=False,
    )


def created(controllers: Controllers, *words: str) -> str:
    """Return a new token."""
    leading = asyncio.run(controllers.leader())
    done = spur("token", "create", *words, "--socket", leading.socket.removeprefix("unix:"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    parse_join_token(done.stdout)
    return done.stdout


def joined(
    controllers: Controllers, directory: Path, token: str, *words: str
) -> subprocess.CompletedProcess[str]:
    """Let a host join."""
    addresses = ",".join(member.rpc_address for member in controllers.members)
    return spur("join", "--controllers", addresses, "--dir", str(directory), *words, stdin=token)


def hosts(controllers: Controllers) -> dict[str, str]:
    """Return the roles of the cluster's hosts by name."""
    with controllers.blocking() as client:
        shown = client.ask(ShowCluster(), ClusterInfo)
    assert isinstance(shown, ClusterInfo)
    return {host.name: host.role for host in shown.hosts}


def test_host_joins_and_its_agent_serves(controllers: Controllers, tmp_path: Path) -> None:
    """A compute node is set up from nothing but a token in a file, and is removed again."""
    token = created(controllers, "--role", "compute", "--host", "n1")
    file = tmp_path / "token"
    file.write_text(token)
    directory = tmp_path / "n1"
    words = ["--name", "n1", "--token-file", str(file), "--set", "cpus=64"]
    words += ["--set", "memory_mib=512000", "--set", "gpu_kind=gfx942", "--set", "gpus=8"]
    done = joined(controllers, directory, "", *words)
    assert "its mode must be 0600" in done.stderr
    file.chmod(0o600)
    done = joined(controllers, directory, "", *words, "--address", "127.0.0.1:25440")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("host n1 joined as compute host ")
    assert f"for n1; start its agent: spurd run --dir {directory}" in done.stdout
    assert not (directory / TLS_DIRECTORY / "joining.key").exists()
    assert hosts(controllers)["n1"] == "compute"
    logs = [member.directory / "log" for member in controllers.members]
    for path in (*directory.rglob("*"), *logs):
        if path.is_file():
            assert token.strip().encode() not in path.read_bytes()
    again = joined(controllers, directory, token, "--name", "n1")
    assert again.returncode == 1
    assert "is in use (it has a spurd.toml)" in again.stderr
    agent = AgentProcess(directory)
    agent.start()
    try:
        with controllers.blocking() as client:
            until("its node is there", lambda: node_state(controllers, "n1") == "IDLE")
            assert client.do(RemoveHost("n1")) == Done()
        until("it is refused", lambda: "not any more, in this cluster" in agent.words())
    finally:
        assert agent.stop() == 0


def node_state(controllers: Controllers, name: str) -> str:
    """Return the state of a node."""
    with controllers.blocking() as client:
        found = client.ask(ListNodes(name, NodeName(""), 1), NodeList)
    assert isinstance(found, NodeList)
    return found.nodes[0].state


def test_refusals_are_one_sentence_each(controllers: Controllers, tmp_path: Path) -> None:
    """What goes wrong when hosts join: each time one sentence, and nobody is let in."""
    token = created(controllers, "--role", "login", "--host", "front", "--valid", "1h")

    def told(*words: str, shown: str = token) -> str:
        done = joined(controllers, tmp_path / "d", shown, *words)
        assert done.returncode == 1
        return done.stderr.removeprefix("spur join: ").partition("\n")[0]

    number = spur("token", "list", "--json", "--socket", local(controllers)).stdout
    mine = [row for row in map(json.loads, number.splitlines()) if row["host"] == "front"][-1]
    assert told("--name", "back") == (
        f"token {mine['id']} is for host 'front'; the signing request names 'back';"
        " the host did not join"
    )
    assert "is for a login host, not a compute host" in told("--name", "front", "--role", "compute")
    assert "no join token: one begins with 'spur-join-1-'" in told(shown="open sesame")
    assert "not whole, or was mistyped" in told(shown=token[:-3])
    unknown = JoinToken(parse_join_token(token).authority, bytes(32))
    assert told("--name", "front", shown=format_join_token(unknown)) == (
        "the cluster knows no such token; the host did not join"
    )
    foreign = JoinToken(bytes(32), parse_join_token(token).secret)
    assert told("--name", "front", shown=format_join_token(foreign)).endswith(
        "is no controller of the token's cluster: its authority has another fingerprint;"
        " the token was not shown"
    )
    assert spur("token", "revoke", str(mine["id"]), "--socket", local(controllers)).returncode == 0
    assert told("--name", "front") == f"token {mine['id']} was revoked; the host did not join"
    assert "front" not in hosts(controllers)


def local(controllers: Controllers) -> str:
    """Return the path of the leader's Unix socket."""
    return asyncio.run(controllers.leader()).socket.removeprefix("unix:")


def question(token: str, name: str, key: ec.EllipticCurvePrivateKey) -> AskToJoin:
    """Return what a host asks at the desk."""
    return AskToJoin(
        secret=parse_join_token(token).secret,
        signing_request=make_signing_request(key, name),
        role="",
        nodes=(),
        clock_ns=time.time_ns(),
        controller=None,
    )


def asked(controllers: Controllers, asked_for: AskToJoin, first: int = 0) -> Certified | Rejection:
    """Ask at the desk of a controller, and of whoever it names."""
    authority = (controllers.credentials.authority).read_text()
    return asyncio.run(
        ask_desk(
            [controllers.members[first].rpc_address],
            lambda: joining_context(authority),
            asked_for,
            wait_s=10,
        )
    )


def test_host_that_asks_again_gets_the_same_certificate(controllers: Controllers) -> None:
    """The answer was lost; the host asks again, at each of the controllers, as does a copyist."""
    token, key = created(controllers, "--role", "login"), make_key()
    answers = [asked(controllers, question(token, "front2", key), number) for number in range(3)]
    assert all(isinstance(answer, Certified) for answer in answers)
    assert len({answer.certificate for answer in answers if isinstance(answer, Certified)}) == 1
    replayed = asked(controllers, question(token, "front2", make_key()))
    assert isinstance(replayed, Rejection)
    assert "was used by host 'front2', and lets nobody else in" in replayed.text
    leading = asyncio.run(controllers.leader())
    until("it is said", lambda: "got no certificate: token" in leading.words())


def test_join_that_was_cut_off_is_taken_up(controllers: Controllers, tmp_path: Path) -> None:
    """The host died after it was let in and before it wrote what it got."""
    token, key = created(controllers, "--role", "login"), make_key()
    directory = tmp_path / "a"
    (directory / TLS_DIRECTORY).mkdir(parents=True)
    (directory / TLS_DIRECTORY / "joining.key").write_bytes(key_pem(key))
    assert isinstance(asked(controllers, question(token, "front3", key)), Certified)
    done = joined(controllers, directory, token, "--name", "front3")
    assert done.returncode == 0, done.stderr
    assert hosts(controllers)["front3"] == "login"


def test_stranger_may_say_nothing_but_its_question(controllers: Controllers) -> None:
    """Somebody without a certificate calls as a client would, or renews without one."""
    authority = controllers.credentials.authority.read_text()
    address = parse_tcp_address(controllers.members[0].rpc_address)
    heard = b""
    with (
        socket.create_connection(address, 5) as plain,
        joining_context(authority).wrap_socket(plain) as secure,
    ):
        for frame in encode_frames(encode(Greeting(version=1, cluster_id=b""))):
            secure.sendall(frame)
        while data := secure.recv(65536):
            heard += data
    assert b"it showed no certificate; hosts of this cluster have one" in heard
    renewed = asyncio.run(
        ask_desk(
            [controllers.members[0].rpc_address],
            lambda: joining_context(authority),
            AskToRenew(make_signing_request(make_key(), "")),
            wait_s=5,
        )
    )
    assert isinstance(renewed, Rejection)
    assert renewed.text == "it showed no certificate; hosts of this cluster have one"


def test_strangers_who_only_stand_there_keep_no_host_out(controllers: Controllers) -> None:
    """Somebody opens one connection after another, knocks, and asks nothing."""
    authority = controllers.credentials.authority.read_text()
    address = parse_tcp_address(controllers.members[0].rpc_address)
    knock = b"".join(encode_frames(encode_desk(Knock(version=DESK_VERSION))))
    with ExitStack() as stack:
        last = b""
        for _ in range(STRANGERS_MAX + 1):
            plain = stack.enter_context(socket.create_connection(address, 5))
            secure = stack.enter_context(joining_context(authority).wrap_socket(plain))
            secure.sendall(knock)
            last = secure.recv(65536)
        assert b"too many hosts ask at once" in last
        renewed = asyncio.run(
            ask_desk(
                [controllers.members[0].rpc_address],
                lambda: client_context(controllers.credentials),
                AskToRenew(make_signing_request(make_key(), "")),
                wait_s=5,
            )
        )
        # A controller is no host that the desk renews; but it was heard.
        assert isinstance(renewed, Rejection)
        assert "gets no certificate" in renewed.text


def test_garbage_at_the_desk_is_refused(controllers: Controllers) -> None:
    """A signing request that is none, and one that its key did not sign."""
    token = created(controllers, "--role", "login")
    good = question(token, "x", make_key())
    for request, what in ((b"", "cannot be read"), (b"\x30\x00", "cannot be read")):
        answer = asked(controllers, msgspec.structs.replace(good, signing_request=request))
        assert isinstance(answer, Rejection)
        assert what in answer.text
    assert isinstance(asked(controllers, good), Certified)


def test_host_renews_its_certificate_while_it_runs(tmp_path: Path) -> None:
    """Certificates hold for seconds: controllers and an agent go on for much longer."""
    made = Controllers.create(
        tmp_path, 3, first_port=25410, settings=f"certificate_life_s = {LIFE_S}\n"
    )
    # Those that were made at the birth hold for a year.
    authority = Authority.open(made.members[0].directory / AUTHORITY_DIRECTORY)
    for number, member in enumerate(made.members, 1):
        files = credentials_in(member.directory / TLS_DIRECTORY)
        shown = verify_certificate(
            files.authority.read_bytes(), files.host.read_bytes(), cluster_id(made), now()
        )
        assert shown.id == number
        short = authority.issue(shown, now(), timedelta(seconds=LIFE_S))
        write_credentials(member.directory / TLS_DIRECTORY, authority.certificate, short)
    made.start()
    agent = AgentProcess(tmp_path / "front")
    try:
        with made.blocking() as client:
            configure(client)
        token = created(made, "--role", "login")
        done = joined(made, agent.directory, token, "--name", "front")
        assert done.returncode == 0, done.stderr
        agent.start()
        files = credentials_in(agent.directory / TLS_DIRECTORY)
        first = validity_of(files.host.read_text())[1]
        every = [files, *(credentials_in(each.directory / TLS_DIRECTORY) for each in made.members)]
        until(
            "each was renewed twice",
            lambda: all(validity_of(each.host.read_text())[1] > first + LIFE_S for each in every),
        )
        assert "the certificate was renewed; it holds until" in agent.words()
        with BlockingClient([f"unix:{agent.directory / 'spurd.sock'}"]) as client:
            assert isinstance(client.ask(ShowCluster(), ClusterInfo), ClusterInfo)
        # Whoever connects now is shown the new ones: the old ones have ended.
        made.members[2].stop()
        made.members[2].start()
        until("it is back", lambda: info(made, made.members[2]).leader > 0)
        with made.blocking() as client:
            assert client.do(RemoveHost("front")) == Done()
        until(
            "it gets no more",
            lambda: (
                "could not be renewed: host" in agent.words()
                and "was removed from the cluster; it gets no certificate" in agent.words()
            ),
        )
    finally:
        agent.stop()
        made.stop()


def cluster_id(controllers: Controllers) -> bytes:
    """Return the cluster's id."""
    return load_genesis(OsDisk(str(controllers.members[0].directory))).cluster_id


def now() -> datetime:
    """Return the time."""
    return datetime.fromtimestamp(time.time(), UTC)


def test_controller_joins_with_a_token(tmp_path: Path) -> None:
    """A cluster of one becomes one of three: each new host makes its key, and votes in the end.

    The first is lost then, and the others go on.
    """
    made = Controllers.create(tmp_path, 1, first_port=25420)
    made.start()
    try:
        with made.blocking() as client:
            configure(client)
        first = made.members[0]
        host = first.rpc_address.rpartition(":")[0]
        for number in (2, 3):
            token = created(made, "--role", "controller", "--host", f"c{number}")
            directory = tmp_path / f"c{number}"
            told = joined(made, directory, token, "--name", f"c{number}")
            assert told.returncode == 1
            assert "is for a controller, which says where it is to be reached" in told.stderr
            raft, rpc = (f"{host}:{25420 + 2 * number + place}" for place in range(2))
            words = ["--name", f"c{number}", "--raft-address", raft]
            assert "has two addresses" in joined(made, directory, token, *words).stderr
            told = joined(made, directory, token, *words, "--rpc-address", rpc)
            assert told.stdout.startswith(f"host c{number} joined as controller "), told.stderr
            member = ControllerProcess(directory, raft, rpc)
            made.members.append(member)
            member.start()
            until("it votes", lambda number=number: votes(made) == number)  # type: ignore[misc]  # a lambda with a default
            until("it has the key", (directory / AUTHORITY_DIRECTORY / "authority.key").exists)
        first.kill()
        rest = Controllers(made.members[1:])
        with rest.blocking() as client:
            before = jobs(client)
            more = submit_many(client, 3)
            assert jobs(client) == before | more
        # Each of them can let hosts in now.
        token = created(rest, "--role", "login")
        assert isinstance(asked(rest, question(token, "front", make_key())), Certified)
    finally:
        made.stop()


def votes(controllers: Controllers) -> int:
    """Return how many controllers vote."""
    with controllers.blocking(controllers.members[0]) as client:
        found = client.ask(ShowControllers(), ControllerList)
    assert isinstance(found, ControllerList)
    return sum(each.voter for each in found.controllers)
