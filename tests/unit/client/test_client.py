"""The asynchronous client against real servers: replicas that fail, move, lie and say no."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spur.client.client import Client
from spur.client.faults import OutcomeUnknown, Unreachable
from spur.client.tls import TlsFiles
from spur.controller.authority import Authority
from spur.events.envelope import Actor
from spur.server.credentials import write_credentials
from spur.server.sessions import Respond
from spur.testing.loops import Run, until
from spur.testing.rpc import CLUSTER, EchoServer, call
from spur.values.errors import PeerFault, Rejection
from spur.values.ids import JobId
from spur.values.states import Hold
from spur.wire.calls import Answered, Call, Refused, Reply
from spur.wire.cluster import ShowReplica
from spur.wire.declare import Done
from spur.wire.hello import HostName
from spur.wire.jobs import HoldJob, JobAccepted
from spur.wire.registry import decode_request, encode_answer

DONE = Answered(answer=encode_answer(Done()))
HOLD = HoldJob(job_id=JobId(7), tasks=None, hold=next(iter(Hold)))
NOW = datetime.fromtimestamp(time.time(), UTC)


def replicas(path: Path, count: int = 3) -> list[EchoServer]:
    """Return servers that say that they have done what is asked."""
    made = [EchoServer(path, replica=number) for number in range(1, count + 1)]
    for echo in made:
        echo.judge = lambda call: DONE
    return made


def serve_all(servers: list[EchoServer], main: Callable[[], Awaitable[None]]) -> Awaitable[None]:
    """Run a test while its servers listen."""

    async def whole() -> None:
        try:
            for echo in servers:
                await echo.server.start_unix(echo.path)
            await main()
        finally:
            for echo in servers:
                await echo.server.close()

    return whole()


def paths(servers: list[EchoServer]) -> list[str]:
    """Return the servers' addresses."""
    return [f"unix:{echo.path}" for echo in servers]


def test_request_is_carried_out(run: Run, tmp_path: Path) -> None:
    """Someone holds a job: the request arrives as it was made, and the answer comes back."""
    [echo] = servers = replicas(tmp_path, 1)

    async def main() -> None:
        async with Client(paths(servers)) as client:
            assert await client.do(HOLD) == Done()
            assert client.position == (1, 8)
            echo.index = 20
            await client.do(HOLD, speaks_for=None)
            assert client.position == (1, 20)
        [(first, _, _), (second, _, _)] = echo.calls
        assert decode_request(first.request) == HOLD
        assert first.request_id != second.request_id
        assert (first.since, first.incarnation, first.at_least) == (7, 1, 7)
        assert (second.since, second.at_least) == (8, 8)

    run(serve_all(servers, main))


def test_requests_share_a_connection(run: Run, tmp_path: Path) -> None:
    """A hundred requests at once, answered in the reverse order, over one connection."""
    [echo] = servers = replicas(tmp_path, 1)
    echo.keeps = True
    echo.judge = None

    async def main() -> None:
        async with Client(paths(servers)) as client:
            asked = [asyncio.ensure_future(client.ask(HOLD, Done)) for _ in range(60)]
            await until(lambda: len(echo.calls) == 60)
            assert len(echo.server._sessions.open) == 1
            for made, _, respond in reversed(echo.calls):
                echo.answer(made, respond, DONE.answer)
            assert await asyncio.gather(*asked) == [Done()] * 60

    run(serve_all(servers, main))


def test_rejection_is_returned(run: Run, tmp_path: Path) -> None:
    """The job does not exist."""
    [echo] = servers = replicas(tmp_path, 1)
    echo.judge = lambda call: Refused(code="unknown-job", text="job 7 does not exist", hint="x")

    async def main() -> None:
        async with Client(paths(servers)) as client:
            assert await client.do(HOLD) == Rejection("unknown-job", "job 7 does not exist", "x")

    run(serve_all(servers, main))


def test_answer_of_another_kind_is_a_fault(run: Run, tmp_path: Path) -> None:
    """The server answers something else, or something that is no answer at all."""
    [echo] = servers = replicas(tmp_path, 1)

    async def main() -> None:
        async with Client(paths(servers)) as client:
            with pytest.raises(PeerFault, match="no JobAccepted that can be read"):
                await client.ask(HOLD, JobAccepted)
            echo.judge = lambda call: Answered(answer=b"\xc1")
            with pytest.raises(PeerFault, match="no Done that can be read"):
                await client.do(HOLD)

    run(serve_all(servers, main))


def test_leader_is_found_among_replicas(run: Run, tmp_path: Path) -> None:
    """The third of three replicas leads: it is found, and asked first from then on."""
    servers = replicas(tmp_path)
    for echo in servers[:2]:
        echo.judge = lambda call: Refused(code="not-leader", text="this replica does not lead")

    async def main() -> None:
        async with Client(paths(servers)) as client:
            assert await client.do(HOLD) == Done()
            assert await client.do(HOLD) == Done()
        assert [len(echo.calls) for echo in servers] == [1, 1, 2]
        assert len({echo.calls[0][0].request_id for echo in servers}) == 1

    run(serve_all(servers, main))


def test_failover_keeps_the_id(run: Run, tmp_path: Path) -> None:
    """The leader dies with the request in hand; the next one is asked with the same id."""
    servers = replicas(tmp_path, 2)
    servers[0].keeps = True

    async def main() -> None:
        async with Client(paths(servers)) as client:
            asked = asyncio.ensure_future(client.do(HOLD))
            await until(lambda: bool(servers[0].calls))
            await servers[0].server.close()
            assert await asked == Done()
        first, second = servers[0].calls[0][0], servers[1].calls[0][0]
        assert (first.request_id, first.since) == (second.request_id, second.since)

    run(serve_all(servers, main))


def test_silent_leader_is_left(run: Run, tmp_path: Path) -> None:
    """The leader's host hangs: it is connected and says nothing, so another one is asked."""
    servers = replicas(tmp_path, 2)
    servers[0].keeps = True

    async def main() -> None:
        async with Client(paths(servers), attempt_s=0.1) as client:
            assert await client.do(HOLD) == Done()
            await until(lambda: not servers[0].server._sessions.open)
        assert len(servers[1].calls) == 1

    run(serve_all(servers, main))


def test_election_is_waited_for(run: Run, tmp_path: Path) -> None:
    """Nobody leads for a while; the request is carried out soon after somebody does."""
    servers = replicas(tmp_path)
    leads = False

    def judge(call: Call) -> Answered | Refused:
        return DONE if leads else Refused(code="not-leader", text="no leader is known")

    for echo in servers:
        echo.judge = judge

    async def main() -> None:
        nonlocal leads
        loop = asyncio.get_running_loop()
        async with Client(paths(servers)) as client:
            asked = asyncio.ensure_future(client.do(HOLD))
            await asyncio.sleep(0.3)
            leads = True
            elected_s = loop.time()
            assert await asked == Done()
            assert loop.time() - elected_s < 0.3
        assert sum(len(echo.calls) for echo in servers) < 60

    run(serve_all(servers, main))


def test_deadline_passes_without_a_controller(run: Run, tmp_path: Path) -> None:
    """No controller runs on this host: nothing was sent, and that is said."""

    async def main() -> None:
        async with Client([f"unix:{tmp_path}/none"], deadline_s=0.2) as client:
            with pytest.raises(
                Unreachable, match=r"in 0\.2 s \(unix:.*No such file.*nothing was done$"
            ):
                await client.do(HOLD)

    run(main())


def test_deadline_passes_with_the_request_sent(run: Run, tmp_path: Path) -> None:
    """The outcome stays open; asked again later with the same id it becomes known."""
    [echo] = servers = replicas(tmp_path, 1)
    echo.keeps = True

    async def main() -> None:
        async with Client(paths(servers)) as client:
            with pytest.raises(OutcomeUnknown, match="may have been carried out or not") as caught:
                await client.ask(HOLD, Done, deadline_s=0.2)
            echo.keeps = False
            unknown = caught.value
            again = await client.ask(HOLD, Done, request_id=unknown.request_id, since=unknown.since)
            assert again == Done()
        first, second = (made for made, _, _ in echo.calls)
        assert (first.request_id, first.since) == (second.request_id, second.since)

    run(serve_all(servers, main))


def test_closed_client_waits_for_nothing(run: Run, tmp_path: Path) -> None:
    """The program ends while a request is in flight."""
    [echo] = servers = replicas(tmp_path, 1)
    echo.keeps = True

    async def main() -> None:
        client = Client(paths(servers))
        asked = asyncio.ensure_future(client.do(HOLD))
        await until(lambda: bool(echo.calls))
        await client.close()
        with pytest.raises(OutcomeUnknown, match="this client was closed"):
            await asked

    run(serve_all(servers, main))


def test_cancelled_request_leaves_the_connection(run: Run, tmp_path: Path) -> None:
    """One of two callers gives up; the other one still gets its answer."""
    [echo] = servers = replicas(tmp_path, 1)
    echo.keeps = True

    async def main() -> None:
        async with Client(paths(servers)) as client:
            one, two = (asyncio.ensure_future(client.do(HOLD)) for _ in range(2))
            await until(lambda: len(echo.calls) == 2)
            one.cancel()
            for made, _, respond in echo.calls:
                echo.answer(made, respond)
            assert await two == Done()
            assert one.cancelled()

    run(serve_all(servers, main))


def test_garbage_from_a_server_is_not_believed(run: Run, tmp_path: Path) -> None:
    """Something else listens at the address of a replica; the client asks the next one."""
    [echo] = servers = replicas(tmp_path, 1)
    other = str(tmp_path / "other")

    async def main() -> None:
        async def garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"220 mail.example.org ESMTP\r\n")
            await reader.read()
            writer.close()

        server = await asyncio.start_unix_server(garbage, other)
        async with Client([f"unix:{other}", *paths(servers)]) as client:
            assert await client.do(HOLD) == Done()
        async with Client([f"unix:{other}"], deadline_s=5.0) as client:
            with pytest.raises(Unreachable, match="garbage where a frame should begin"):
                await client.do(HOLD)
        await asyncio.sleep(0.05)
        server.close()

    run(serve_all(servers, main))
    assert len(echo.calls) == 1


# -- TLS


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority of the test's cluster."""
    return Authority.create(tmp_path_factory.mktemp("authority"), CLUSTER, NOW)


Files = Callable[..., TlsFiles]


@pytest.fixture(scope="module")
def files(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Return a maker of hosts' certificates."""

    def make(role: str, number: int = 1, by: Authority = authority) -> TlsFiles:
        issued = by.issue(HostName(cluster_id=CLUSTER, role=role, id=number), NOW)
        return write_credentials(tmp_path_factory.mktemp("tls"), authority.certificate, issued)

    return make


def test_leader_is_followed_by_its_address(run: Run, tmp_path: Path, files: Files) -> None:
    """A replica names the leader's address, which the client was never told before."""
    one, two = replicas(tmp_path, 2)

    async def main() -> None:
        for echo in (one, two):
            await echo.server.start_tls("127.0.0.1", 0, files("controller"))
        leader = f"127.0.0.1:{two.server.port}"
        one.judge = lambda call: Refused(code="not-leader", text="", leader=leader)
        address = f"127.0.0.1:{one.server.port}"
        async with Client([address], tls=files("admin"), cluster_id=CLUSTER) as client:
            assert await client.do(HOLD) == Done()
            assert await client.do(HOLD) == Done()
        assert (len(one.calls), len(two.calls)) == (1, 2)
        assert two.calls[0][1].host_role == "admin"

    run(serve_all([one, two], main))


def test_leader_without_a_sign_of_life_is_left_soon(run: Run, tmp_path: Path, files: Files) -> None:
    """The leader hangs, or its cable is cut: another one is asked well before a second is over."""
    one, two = replicas(tmp_path, 2)
    one.keeps = True

    async def main() -> None:
        for echo in (one, two):
            await echo.server.start_tls("127.0.0.1", 0, files("controller"))
        addresses = [f"127.0.0.1:{echo.server.port}" for echo in (one, two)]
        async with Client(addresses, tls=files("admin"), cluster_id=CLUSTER) as client:
            began_s = time.monotonic()
            assert await client.do(HOLD) == Done()
            assert time.monotonic() - began_s < 0.9
        asked, probe = [decode_request(call.request) for call, _, _ in one.calls]
        assert (asked, probe) == (HOLD, ShowReplica())

    run(serve_all([one, two], main))


def test_leader_that_takes_its_time_and_lives_is_waited_for(
    run: Run, tmp_path: Path, files: Files
) -> None:
    """A request takes the leader a second; it answers everything else meanwhile."""
    one, two = replicas(tmp_path, 2)
    one.keeps = True

    async def main() -> None:
        for echo in (one, two):
            await echo.server.start_tls("127.0.0.1", 0, files("controller"))
        addresses = [f"127.0.0.1:{echo.server.port}" for echo in (one, two)]

        async def answer() -> None:
            end_s = time.monotonic() + 1.0
            answered = 0
            while time.monotonic() < end_s:
                for made, _, respond in one.calls[answered:]:
                    answered += 1
                    if decode_request(made.request) != HOLD:
                        one.answer(made, respond)
                await asyncio.sleep(0.02)
            made, _, respond = one.calls[0]
            one.answer(made, respond)

        async with Client(addresses, tls=files("admin"), cluster_id=CLUSTER) as client:
            answering = asyncio.create_task(answer())
            assert await client.do(HOLD) == Done()
            await answering
        assert two.calls == []

    run(serve_all([one, two], main))


@pytest.mark.parametrize("role", ["compute", "login"])
def test_host_that_poses_as_a_controller_is_refused(
    run: Run, tmp_path: Path, files: Files, role: str
) -> None:
    """An agent's host, with its own good certificate, listens at a controller's address."""
    [echo] = servers = replicas(tmp_path, 1)

    async def main() -> None:
        await echo.server.start_tls("127.0.0.1", 0, files(role))
        address = f"127.0.0.1:{echo.server.port}"
        async with Client([address], tls=files("admin")) as client:
            with pytest.raises(Unreachable, match="which is no controller"):
                await client.do(HOLD)

    run(serve_all(servers, main))
    assert echo.calls == []


def test_foreign_certificates_are_refused_by_both(run: Run, tmp_path: Path, files: Files) -> None:
    """Client and controller are of two clusters: one sentence, and no waiting."""
    other = Authority.create(tmp_path / "other", CLUSTER, NOW)
    [echo] = servers = replicas(tmp_path, 1)

    async def main() -> None:
        await echo.server.start_tls("127.0.0.1", 0, files("controller"))
        address = f"127.0.0.1:{echo.server.port}"
        async with Client([address], tls=files("admin", by=other)) as client:
            with pytest.raises(Unreachable, match="it refused our certificate or our TLS"):
                await client.do(HOLD)

    run(serve_all(servers, main))
    assert echo.calls == []


def test_call_that_is_refused_again_and_again_is_given_up(tmp_path: Path) -> None:
    """An agent passes a command on, and whoever it asks does not lead.

    That one of these refusals is on its way as the time ends does not make it wait for long.
    """

    async def forward() -> float:
        echo = EchoServer(tmp_path)
        loop = asyncio.get_running_loop()

        class Slow(list[tuple[Call, Actor, Respond]]):
            """Answers each call that is put into it, a while later."""

            def append(self, item: tuple[Call, Actor, Respond]) -> None:
                made, _, respond = item
                refused = Refused("not-leader", "no controller leads")
                reply = Reply(number=made.number, incarnation=1, index=8, outcome=refused)
                loop.call_later(0.1, respond, reply)

        echo.keeps, echo.calls = True, Slow()
        await echo.server.start_unix(echo.path)
        async with Client([f"unix:{echo.path}"]) as client:
            began_s = loop.time()
            # Most of the time a refusal is on its way.
            for unsent_s in (0.25, 0.35):
                with pytest.raises(Unreachable):
                    await client.forward(
                        call(1), speaks_for=(0, 0), unsent_s=unsent_s, deadline_s=20.0
                    )
            took_s = loop.time() - began_s
        await echo.server.close()
        return took_s

    assert asyncio.run(forward()) < 2.0
