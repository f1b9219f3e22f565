"""The RPC server over real sockets: who calls, what is answered, and what is cut."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import ssl
import stat
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import uvloop

from spur.client.tls import TlsFiles, client_context
from spur.controller.authority import Authority, write_credentials
from spur.controller.rpc import RpcLimits, RpcServer
from spur.controller.sessions import Respond
from spur.events.envelope import Actor
from spur.values.errors import InvariantBroken, OperatorFault
from spur.wire.calls import (
    FROM_REPLICA_LIMIT,
    Answered,
    Call,
    Goodbye,
    Greeting,
    Refused,
    Reply,
    Welcome,
    decode_from_replica,
    encode,
)
from spur.wire.frames import FrameDecoder, encode_frames
from spur.wire.hello import HostName

CLUSTER = bytes(range(16))
NOW = datetime.fromtimestamp(time.time(), UTC)
GREETING = Greeting(version=1, cluster_id=CLUSTER)

Run = Callable[[Awaitable[None]], None]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Run a test's coroutine on each kind of loop."""
    factory = asyncio.new_event_loop if request.param == "asyncio" else uvloop.new_event_loop

    def on_loop(main: Awaitable[None]) -> None:
        async def guarded() -> None:
            faults: list[dict[str, Any]] = []
            asyncio.get_running_loop().set_exception_handler(lambda _, what: faults.append(what))
            await main
            await asyncio.sleep(0.02)
            assert not faults, faults

        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(guarded())

    return on_loop


def call(number: int, request: bytes = b"hello", **changed: Any) -> Call:
    """Return a call of this number."""
    made = Call(
        number=number,
        request_id=number.to_bytes(16, "big"),
        since=5,
        incarnation=1,
        at_least=5,
        speaks_for=None,
        request=request,
    )
    return msgspec.structs.replace(made, **changed)


class House:
    """A server whose handler answers with the request, or keeps it for the test to answer."""

    def __init__(self, path: Path, limits: RpcLimits | None = None) -> None:
        self.path = str(path / "s")
        self.calls: list[tuple[Call, Actor, Respond]] = []
        self.keeps = False
        self.reports: list[str] = []
        self.server = RpcServer(
            cluster_id=CLUSTER,
            replica=2,
            handler=self.take,
            position=lambda: (1, 7),
            report=self.reports.append,
            limits=limits,
        )

    def take(self, made: Call, actor: Actor, respond: Respond) -> None:
        """Answer a call, or keep it."""
        self.calls.append((made, actor, respond))
        if not self.keeps:
            self.answer(made, respond)

    def answer(self, made: Call, respond: Respond, answer: bytes | None = None) -> None:
        """Answer a call with its own request, or something else."""
        outcome = Answered(answer=made.request if answer is None else answer)
        respond(Reply(number=made.number, incarnation=1, index=8, outcome=outcome))


class Talker:
    """A client as plain as can be, that sends whatever a test wants."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.decoder = FrameDecoder(FROM_REPLICA_LIMIT)
        self.messages: list[Welcome | Reply | Goodbye] = []

    def say(self, *messages: Greeting | Call) -> None:
        """Send messages."""
        for message in messages:
            self.writer.writelines(encode_frames(encode(message)))

    async def hear(self) -> Welcome | Reply | Goodbye | None:
        """Return the next message; None when the connection has ended."""
        async with asyncio.timeout(5):
            while not self.messages:
                data = await self.reader.read(1 << 16)
                if not data:
                    self.decoder.finish()
                    return None
                self.messages += map(decode_from_replica, self.decoder.feed(data))
        return self.messages.pop(0)

    async def hear_replies(self, count: int) -> list[Reply]:
        """Return the next replies."""
        heard = [await self.hear() for _ in range(count)]
        return [reply for reply in heard if isinstance(reply, Reply)]

    async def hear_goodbye(self) -> Goodbye:
        """Return why the connection ends, which it then does."""
        last = await self.hear()
        assert isinstance(last, Goodbye), last
        assert await self.hear() is None
        return last


@asynccontextmanager
async def talker(house: House, *, greet: bool = True) -> AsyncIterator[Talker]:
    """Return a client on the Unix socket that has been welcomed."""
    made = Talker(*await asyncio.open_unix_connection(house.path))
    try:
        if greet:
            made.say(GREETING)
            assert isinstance(await made.hear(), Welcome)
        yield made
    finally:
        made.writer.close()


def serve(
    house: House, main: Callable[[], Awaitable[None]], files: TlsFiles | None = None
) -> Awaitable[None]:
    """Run a test while its server listens."""

    async def whole() -> None:
        await house.server.start_unix(house.path)
        try:
            if files is not None:
                await house.server.start_tls("127.0.0.1", 0, files)
            await main()
        finally:
            await house.server.close()

    return whole()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition; fail when it does not come."""
    async with asyncio.timeout(3):
        while not condition():  # noqa: ASYNC110  # there is no event for any change of a state
            await asyncio.sleep(0.005)


def test_user_of_this_host_is_known_by_the_kernel(run: Run, tmp_path: Path) -> None:
    """Someone runs a command on the controller: nobody asks for a password, the kernel knows."""
    house = House(tmp_path)

    async def main() -> None:
        async with talker(house, greet=False) as client:
            client.say(GREETING)
            assert await client.hear() == Welcome(
                version=1, cluster_id=CLUSTER, replica=2, incarnation=1, index=7
            )
            client.say(call(1, b"who am I"))
            answered = Answered(answer=b"who am I")
            assert await client.hear() == Reply(number=1, incarnation=1, index=8, outcome=answered)
        assert [actor for _, actor, _ in house.calls] == [
            Actor(os.getuid(), os.getgid(), host_id=2, host_role="controller", via="socket")
        ]
        assert stat.S_IMODE(os.stat(house.path).st_mode) == 0o666

    run(serve(house, main))
    assert not os.path.exists(house.path)


def test_answers_may_come_in_any_order(run: Run, tmp_path: Path) -> None:
    """Many calls are in flight on one connection and are answered later, the last one first."""
    house = House(tmp_path)
    house.keeps = True

    async def main() -> None:
        async with talker(house) as client:
            client.say(*(call(n, bytes([n])) for n in range(1, 33)))
            await until(lambda: len(house.calls) == 32)
            for made, _, respond in reversed(house.calls):
                house.answer(made, respond)
            replies = await client.hear_replies(32)
        assert [reply.number for reply in replies] == list(range(32, 0, -1))
        assert all(reply.outcome == Answered(answer=bytes([reply.number])) for reply in replies)

    run(serve(house, main))


def test_large_request_and_answer_pass(run: Run, tmp_path: Path) -> None:
    """A script at its limit of megabytes goes there and back."""
    house = House(tmp_path)
    large = bytes(range(256)) * 32_000

    async def main() -> None:
        async with talker(house) as client:
            client.say(call(1, large))
            [reply] = await client.hear_replies(1)
            assert reply.outcome == Answered(answer=large)

    run(serve(house, main))


def test_request_over_its_limit_is_refused(run: Run, tmp_path: Path) -> None:
    """A request of nine megabytes: the client is told at its header, before it has sent it all."""
    house = House(tmp_path)

    async def main() -> None:
        async with talker(house) as client:
            client.say(call(1, bytes(9 << 20)))
            goodbye = await client.hear_goodbye()
            assert goodbye.code == "protocol"
            assert goodbye.text.startswith("request too long: over 8392704 bytes, its limit")

    run(serve(house, main))
    assert house.calls == []


def test_answer_over_its_limit_is_refused(run: Run, tmp_path: Path) -> None:
    """Somebody asks for more rows than one answer may hold; the connection goes on."""
    house = House(tmp_path)
    house.keeps = True

    async def main() -> None:
        async with talker(house) as client:
            client.say(call(1))
            await until(lambda: bool(house.calls))
            made, _, respond = house.calls[0]
            house.answer(made, respond, bytes((32 << 20) + 1))
            house.keeps = False
            client.say(call(2))
            first, second = await client.hear_replies(2)
            assert isinstance(first.outcome, Refused)
            assert first.outcome.code == "limit-exceeded"
            assert first.outcome.hint == "ask for less at once"
            assert second.outcome == Answered(answer=b"hello")

    run(serve(house, main))


def test_root_speaks_for_others_and_nobody_else_does(run: Run, tmp_path: Path) -> None:
    """A call on the Unix socket says it is for user 1000."""
    house = House(tmp_path)

    async def main() -> None:
        async with talker(house) as client:
            client.say(call(1, speaks_for=(os.getuid(), os.getgid())))
            client.say(call(2, speaks_for=(77777, 100)))
            first, second = await client.hear_replies(2)
            assert isinstance(first.outcome, Answered)
            if os.getuid() == 0:
                assert house.calls[1][1] == Actor(77777, 100, 2, "controller", "socket")
            else:
                assert isinstance(second.outcome, Refused)
                assert second.outcome.code == "not-permitted"
                assert len(house.calls) == 1

    run(serve(house, main))


def test_calls_over_the_limit_wait_unread(run: Run, tmp_path: Path) -> None:
    """A client sends far more calls than may be in flight: the rest waits, none is lost."""
    house = House(tmp_path, RpcLimits(calls_in_flight_max=4))
    house.keeps = True

    async def main() -> None:
        async with talker(house) as client, talker(house) as other:
            client.say(*(call(n, bytes(2000)) for n in range(1, 2001)))
            await until(lambda: len(house.calls) == 4)
            await asyncio.sleep(0.05)
            assert len(house.calls) == 4
            other.say(call(1, b"other"))
            await until(lambda: len(house.calls) == 5)
            house.keeps = False
            for made, _, respond in list(house.calls):
                house.answer(made, respond)
            replies = await client.hear_replies(2000)
            assert sorted(reply.number for reply in replies) == list(range(1, 2001))

    run(serve(house, main))


def test_bytes_over_the_limit_wait_unread(run: Run, tmp_path: Path) -> None:
    """A client sends large requests faster than they commit: so many bytes are taken, no more."""
    house = House(tmp_path, RpcLimits(in_flight_bytes_max=3 << 20))
    house.keeps = True

    async def main() -> None:
        async with talker(house) as client:
            client.say(*(call(n, bytes(1 << 20)) for n in range(1, 11)))
            await until(lambda: len(house.calls) == 3)
            await asyncio.sleep(0.05)
            assert len(house.calls) == 3
            house.keeps = False
            for made, _, respond in list(house.calls):
                house.answer(made, respond, b"x")
            assert len(await client.hear_replies(10)) == 10

    run(serve(house, main))


def test_calls_over_the_total_are_told_busy(run: Run, tmp_path: Path) -> None:
    """All clients together have too much in flight: the next call is told so at once."""
    house = House(tmp_path, RpcLimits(in_flight_bytes_total_max=1 << 20))
    house.keeps = True

    async def main() -> None:
        async with talker(house) as one, talker(house) as two:
            one.say(call(1, bytes(900_000)))
            await until(lambda: len(house.calls) == 1)
            two.say(call(1, bytes(900_000)))
            [reply] = await two.hear_replies(1)
            assert isinstance(reply.outcome, Refused)
            assert reply.outcome.code == "busy"
            assert len(house.calls) == 1
            one.writer.close()
            await asyncio.sleep(0.05)
            two.say(call(2, bytes(900_000)))
            await until(lambda: len(house.calls) == 2)
            house.answer(house.calls[0][0], house.calls[0][2])

    run(serve(house, main))


def test_client_that_reads_slowly_slows_itself_alone(run: Run, tmp_path: Path) -> None:
    """A client asks for large answers and does not read them: few are made until it does."""
    house = House(tmp_path, RpcLimits(unsent_bytes_soft=1 << 20))

    async def main() -> None:
        async with talker(house) as client, talker(house) as other:
            client.say(*(call(n, bytes(500_000)) for n in range(1, 16)))
            await asyncio.sleep(0.2)
            made = len(house.calls)
            assert made < 12
            other.say(call(1, b"quick"))
            [reply] = await other.hear_replies(1)
            assert reply.outcome == Answered(answer=b"quick")
            assert len(await client.hear_replies(15)) == 15

    run(serve(house, main))


def test_client_that_never_reads_is_cut(run: Run, tmp_path: Path) -> None:
    """A client asks and never reads, past the time limit, and past the bytes limit."""
    limits = RpcLimits(unread_s=0.1, sweep_s=0.02, unsent_bytes_max=4 << 20)
    house = House(tmp_path, limits)

    async def main() -> None:
        async with talker(house) as client:
            client.say(*(call(n, bytes(1_000_000)) for n in range(1, 4)))
            await until(lambda: len(house.reports) == 1)
            assert "it took none of its answers for 0.1 s" in house.reports[0]
        house.keeps = True
        async with talker(house) as client:
            client.say(*(call(n) for n in range(1, 21)))
            await until(lambda: len(house.calls) >= 20)
            for made, _, respond in house.calls[-20:]:
                house.answer(made, respond, bytes(1 << 20))
            await until(lambda: len(house.reports) == 2)
            assert "over 4194304 bytes of answers wait to be read" in house.reports[1]

    run(serve(house, main))


def test_greeting_is_waited_for_so_long(run: Run, tmp_path: Path) -> None:
    """Something connects and says nothing."""
    house = House(tmp_path, RpcLimits(greeting_s=0.1, sweep_s=0.02))

    async def main() -> None:
        async with talker(house, greet=False) as client:
            assert await client.hear_goodbye() == Goodbye(
                code="timed-out", text="no greeting within 0.1 s"
            )

    run(serve(house, main))


def test_request_must_be_finished_in_time(run: Run, tmp_path: Path) -> None:
    """A client sends half a request and stops, while another call of it is in flight."""
    house = House(tmp_path, RpcLimits(message_s=0.1, sweep_s=0.02))
    house.keeps = True

    async def main() -> None:
        async with talker(house) as client:
            client.say(call(1))
            await until(lambda: bool(house.calls))
            client.writer.write(encode_frames(encode(call(2)))[0][:-1])
            goodbye = await client.hear_goodbye()
            assert goodbye.text == "a request was not finished within 0.1 s"

    run(serve(house, main))


def test_idle_connection_is_ended(run: Run, tmp_path: Path) -> None:
    """A client asks nothing for long; one that waits for an answer is not idle."""
    house = House(tmp_path, RpcLimits(idle_s=0.15, sweep_s=0.02))
    house.keeps = True

    async def main() -> None:
        async with talker(house) as idle, talker(house) as waiting:
            waiting.say(call(1))
            assert (await idle.hear_goodbye()).text == "nothing was asked for too long"
            await asyncio.sleep(0.1)
            house.answer(house.calls[0][0], house.calls[0][2])
            assert len(await waiting.hear_replies(1)) == 1
        assert house.reports == []

    run(serve(house, main))


def test_connections_are_limited(run: Run, tmp_path: Path) -> None:
    """One connection more than there may be: it is told so, the others go on."""
    house = House(tmp_path, RpcLimits(connections_max=2))

    async def main() -> None:
        async with talker(house) as one, talker(house), talker(house, greet=False) as third:
            assert await third.hear_goodbye() == Goodbye(
                code="limit-exceeded", text="too many connections; at most 2"
            )
            one.say(call(1))
            assert len(await one.hear_replies(1)) == 1
        await until(lambda: not house.server._sessions.open)
        async with talker(house) as again:
            again.say(call(1))
            assert len(await again.hear_replies(1)) == 1

    run(serve(house, main))


def test_crowd_of_connections_is_just_ended(run: Run, tmp_path: Path) -> None:
    """Far more connections than there may be: none is kept, and the server goes on."""
    house = House(tmp_path, RpcLimits(connections_max=1))

    async def main() -> None:
        crowd = [Talker(*await asyncio.open_unix_connection(house.path)) for _ in range(150)]
        for member in crowd[1:]:
            heard = await member.hear()
            assert heard is None or isinstance(heard, Goodbye)
        for member in crowd:
            member.writer.close()
        await asyncio.sleep(0.05)
        async with talker(house) as client:
            client.say(call(1))
            assert len(await client.hear_replies(1)) == 1

    run(serve(house, main))


def test_one_user_cannot_take_all_connections(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's script opens connections without end; another user still gets one."""
    house = House(tmp_path, RpcLimits(user_connections_max=2))
    users = iter([(1000, 100)] * 3 + [(1001, 100)])
    real = socket.socket.getsockopt

    def of_a_user(self: socket.socket, level: int, option: int, *size: int) -> Any:
        if option != socket.SO_PEERCRED:
            return real(self, level, option, *size)
        uid, gid = next(users)
        return b"".join(n.to_bytes(4, "little") for n in (1, uid, gid))

    async def main() -> None:
        async with talker(house), talker(house), talker(house, greet=False) as third:
            goodbye = await third.hear_goodbye()
            assert goodbye.text == "too many connections of user 1000; at most 2"
            async with talker(house) as other:
                other.say(call(1))
                assert len(await other.hear_replies(1)) == 1
                assert house.calls[0][1].uid == 1001

    monkeypatch.setattr(socket.socket, "getsockopt", of_a_user)
    with asyncio.Runner() as runner:
        runner.run(_of(serve(house, main)))


async def _of(main: Awaitable[None]) -> None:
    await main


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "garbage where a frame should begin"),
        (b"\xff\xff\xff\xff\x50", "frame too long: 4294967295 bytes"),
        (b"\x00\x00\x08\x00\x50" + bytes(100), "greeting too long: over 1024 bytes"),
        (b"\x00\x00\x00\x02\x50\x91\x07", "a call that cannot be read"),
        (b"".join(encode_frames(encode(call(1)))), "a call before the greeting"),
        (
            b"".join(encode_frames(encode(Greeting(version=9, cluster_id=b"")))),
            "it speaks version 9 of the wire; this controller speaks 1",
        ),
        (
            b"".join(encode_frames(encode(Greeting(version=1, cluster_id=b"x" * 16)))),
            f"it means cluster {(b'x' * 16).hex()}; this is {CLUSTER.hex()}",
        ),
    ],
    ids=["http", "too-long", "greeting-too-long", "garbage", "no-greeting", "version", "cluster"],
)
def test_wrong_first_words_end_in_one_sentence(
    run: Run, tmp_path: Path, sent: bytes, sentence: str
) -> None:
    """What connects is no client of ours: it gets one sentence, as does the log, once."""
    house = House(tmp_path)

    async def main() -> None:
        for _ in range(2):
            async with talker(house, greet=False) as client:
                client.writer.write(sent)
                assert (await client.hear_goodbye()).text.startswith(sentence)
        async with talker(house) as client:
            client.say(call(1))
            assert len(await client.hear_replies(1)) == 1
        assert len(house.reports) == 1
        assert sentence in house.reports[0]

    run(serve(house, main))


def test_cut_request_is_said(run: Run, tmp_path: Path) -> None:
    """The client dies in the middle of sending."""
    house = House(tmp_path)

    async def main() -> None:
        async with talker(house) as client:
            client.writer.write(encode_frames(encode(call(1)))[0][:-1])
            client.writer.write_eof()
            assert "cut inside a request" in (await client.hear_goodbye()).text

    run(serve(house, main))


def test_number_in_use_is_refused(run: Run, tmp_path: Path) -> None:
    """A client gives two calls in flight the same number; it could not tell their answers apart."""
    house = House(tmp_path)
    house.keeps = True

    async def main() -> None:
        async with talker(house) as client:
            client.say(call(3), call(3))
            assert (await client.hear_goodbye()).text == "call number 3 is in use already"

    run(serve(house, main))


def test_answering_twice_is_our_fault(run: Run, tmp_path: Path) -> None:
    """The handler answers a call twice: that is a fault of ours, and not hidden."""
    house = House(tmp_path)

    async def main() -> None:
        async with talker(house) as client:
            client.say(call(1))
            await client.hear_replies(1)
            made, _, respond = house.calls[0]
            with pytest.raises(InvariantBroken, match="call 1 was answered twice"):
                house.answer(made, respond)

    run(serve(house, main))


def test_answer_to_a_client_that_left_goes_nowhere(run: Run, tmp_path: Path) -> None:
    """The client gave up before its entry committed."""
    house = House(tmp_path)
    house.keeps = True

    async def main() -> None:
        async with talker(house) as client:
            client.say(call(1))
            await until(lambda: bool(house.calls))
        await asyncio.sleep(0.05)
        house.answer(house.calls[0][0], house.calls[0][2])

    run(serve(house, main))


def test_stopping_server_says_goodbye(run: Run, tmp_path: Path) -> None:
    """The controller is stopped while clients are connected."""
    house = House(tmp_path)

    async def main() -> None:
        async with talker(house) as client:
            closing = asyncio.ensure_future(house.server.close())
            assert await client.hear_goodbye() == Goodbye(
                code="ask-again", text="this controller stops"
            )
            client.writer.close()
            await closing

    run(serve(house, main))


def test_socket_in_use_is_said(tmp_path: Path) -> None:
    """A second controller is started on the same directory; a socket left by a crash is no bar."""
    house, second = House(tmp_path), House(tmp_path)
    with socket.socket(socket.AF_UNIX) as crashed:
        crashed.bind(house.path)

    async def main() -> None:
        with pytest.raises(OperatorFault, match="another process listens on this socket already"):
            await second.server.start_unix(house.path)
        async with talker(house) as client:
            client.say(call(1))
            assert len(await client.hear_replies(1)) == 1

    with asyncio.Runner() as runner:
        runner.run(_of(serve(house, main)))


def test_socket_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    """The directory of the socket does not exist."""
    house = House(tmp_path / "absent")

    async def main() -> None:
        with pytest.raises(OperatorFault, match="cannot listen on this socket"):
            await house.server.start_unix(house.path)

    asyncio.run(main())


# -- TLS


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority of the test's cluster."""
    return Authority.create(tmp_path_factory.mktemp("authority"), CLUSTER, NOW)


Files = Callable[..., TlsFiles]


@pytest.fixture(scope="module")
def files(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Return a maker of hosts' certificates."""

    def make(
        role: str, number: int = 1, by: Authority = authority, cluster_id: bytes = CLUSTER
    ) -> TlsFiles:
        issued = by.issue(HostName(cluster_id=cluster_id, role=role, id=number), NOW)
        return write_credentials(tmp_path_factory.mktemp("tls"), authority.certificate, issued)

    return make


async def tls_talker(house: House, context: ssl.SSLContext) -> Talker:
    """Return a client on the TLS port."""
    return Talker(
        *await asyncio.open_connection(
            "127.0.0.1", house.server.port, ssl=context, server_hostname="x"
        )
    )


@pytest.mark.parametrize("role", ["controller", "admin", "login", "compute"])
def test_host_is_known_by_its_certificate(
    run: Run, tmp_path: Path, files: Files, role: str
) -> None:
    """A host of each role calls for itself and for a user; decide will judge what it may."""
    house = House(tmp_path)

    async def main() -> None:
        client = await tls_talker(house, client_context(files(role, 9)))
        client.say(GREETING)
        assert isinstance(await client.hear(), Welcome)
        client.say(call(1), call(2, speaks_for=(1000, 100)))
        await client.hear_replies(2)
        via = "agent" if role in ("login", "compute") else "tls"
        assert [actor for _, actor, _ in house.calls] == [
            Actor(uid=0, gid=0, host_id=9, host_role=role, via=via),
            Actor(uid=1000, gid=100, host_id=9, host_role=role, via="tls"),
        ]
        client.writer.close()

    run(serve(house, main, files("controller")))


def test_large_messages_pass_under_tls(run: Run, tmp_path: Path, files: Files) -> None:
    """Eight megabytes there and back, under TLS."""
    house = House(tmp_path)
    large = bytes(range(256)) * 32_000

    async def main() -> None:
        client = await tls_talker(house, client_context(files("admin")))
        client.say(GREETING)
        assert isinstance(await client.hear(), Welcome)
        client.say(call(1, large))
        [reply] = await client.hear_replies(1)
        assert reply.outcome == Answered(answer=large)
        client.writer.close()

    run(serve(house, main, files("controller")))


def test_certificate_of_another_cluster_is_refused(run: Run, tmp_path: Path, files: Files) -> None:
    """Two clusters share an authority by mistake; the name in the certificate still tells."""
    house = House(tmp_path)

    async def main() -> None:
        client = await tls_talker(house, client_context(files("admin", cluster_id=b"x" * 16)))
        client.say(GREETING)
        goodbye = await client.hear_goodbye()
        assert goodbye.code == "foreign-peer"
        assert goodbye.text.startswith(f"its certificate is of cluster {(b'x' * 16).hex()}; ")
        client.writer.close()

    run(serve(house, main, files("controller")))
    assert house.calls == []


def test_certificate_of_another_authority_is_refused(
    run: Run, tmp_path: Path, files: Files
) -> None:
    """A host of another cluster calls, and one that shows no certificate at all."""
    house = House(tmp_path)
    other = Authority.create(tmp_path / "other", CLUSTER, NOW)
    foreign = client_context(files("admin", by=other))
    none = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    none.check_hostname = False
    none.verify_mode = ssl.CERT_NONE

    async def main() -> None:
        for context, sentence in (
            (foreign, "its certificate was not issued by this cluster's authority"),
            (none, "it showed no certificate"),
        ):
            client = await tls_talker(house, context)
            client.say(GREETING)
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await client.hear()
            client.writer.close()
            await until(lambda: bool(house.reports))
            assert sentence in house.reports.pop()

    run(serve(house, main, files("controller")))


def test_call_without_tls_is_refused_on_the_tls_port(
    run: Run, tmp_path: Path, files: Files
) -> None:
    """Something speaks plain frames, and garbage, to the TLS port."""
    house = House(tmp_path)

    async def main() -> None:
        for first in (b"".join(encode_frames(encode(GREETING))), os.urandom(500)):
            reader, writer = await asyncio.open_connection("127.0.0.1", house.server.port)
            writer.write(first)
            async with asyncio.timeout(3):
                await reader.read()
            writer.close()
        async with talker(house) as client:
            client.say(call(1))
            assert len(await client.hear_replies(1)) == 1

    run(serve(house, main, files("controller")))
    assert house.reports
    assert all("it does not speak TLS 1.3 with us" in report for report in house.reports)


# -- garbage, with a fixed budget


def _spoil(rng: random.Random, good: bytes) -> bytes:
    """Return a good stream made bad: cut, changed, repeated, or with garbage inside."""
    data = bytearray(good)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(5):
            case 0:
                del data[at:]
            case 1:
                data[at:at] = rng.randbytes(rng.randrange(1, 40))
            case 2 if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            case 3:
                data[at:at] = data[: rng.randrange(200)]
            case _:
                del data[at : at + rng.randrange(1, 30)]
    return bytes(data)


def test_spoilt_streams_harm_nobody(run: Run, tmp_path: Path) -> None:
    """Four hundred clients send spoilt streams: each ends, at most one sentence, memory stays."""
    house = House(tmp_path, RpcLimits(message_s=0.1, greeting_s=0.1, idle_s=0.3, sweep_s=0.02))
    rng = random.Random(20)
    good = b"".join(
        frame
        for message in (GREETING, call(1), call(2, bytes(300)), call(3, speaks_for=(1, 1)))
        for frame in encode_frames(encode(message))
    )

    async def one(spoilt: bytes) -> None:
        async with talker(house, greet=False) as client:
            client.writer.write(spoilt)
            last: object = None
            while (heard := await client.hear()) is not None:
                assert not isinstance(last, Goodbye)
                last = heard
            if isinstance(last, Goodbye):
                assert last.text
                assert "\n" not in last.text

    async def main() -> None:
        for _ in range(4):
            await asyncio.gather(*(one(_spoil(rng, good)) for _ in range(100)))
            assert sum(s.held_bytes for s in house.server._sessions.open) < 1 << 20
        async with talker(house) as client:
            client.say(call(1))
            assert len(await client.hear_replies(1)) == 1
        await until(lambda: not house.server._sessions.open)
        assert house.server._sessions.in_flight_bytes == 0

    run(serve(house, main))


def test_many_large_unfinished_requests_are_bounded(run: Run, tmp_path: Path) -> None:
    """Clients send all but the last byte of large requests: the largest holders are cut."""
    house = House(tmp_path, RpcLimits(held_bytes_total_max=10 << 20, sweep_s=0.02))
    stream = b"".join(encode_frames(encode(call(1, bytes(4 << 20)))))[:-1]

    async def main() -> None:
        clients = []
        for _ in range(6):
            client = Talker(*await asyncio.open_unix_connection(house.path))
            client.say(GREETING)
            await client.hear()
            client.writer.write(stream)
            clients.append(client)
        await until(lambda: any("are held for it" in report for report in house.reports))
        await asyncio.sleep(0.1)
        assert sum(s.held_bytes for s in house.server._sessions.open) <= 10 << 20
        for client in clients:
            client.writer.transport.abort()

    run(serve(house, main))
