"""The RPC server over real sockets: what one client may take, and garbage."""

from __future__ import annotations

import asyncio
import random
import socket
from pathlib import Path
from typing import Any

import pytest

from spur.server.rpc import RpcLimits
from spur.testing.loops import Run, run_on_loop, until
from spur.testing.rpc import (
    GREETING,
    EchoServer,
    PlainClient,
    call,
    plain_client,
    serve,
)
from spur.wire.calls import (
    Answered,
    Goodbye,
    Refused,
    encode,
)
from spur.wire.frames import encode_frames


def test_request_over_its_limit_is_refused(run: Run, tmp_path: Path) -> None:
    """A request of nine megabytes: the client is told at its header, before it has sent it all."""
    echo = EchoServer(tmp_path)

    async def main() -> None:
        async with plain_client(echo) as client:
            client.say(call(1, bytes(9 << 20)))
            goodbye = await client.hear_goodbye()
            assert goodbye.code == "protocol"
            assert goodbye.text.startswith("request too long: over 8392704 bytes, its limit")

    run(serve(echo, main))
    assert echo.calls == []


def test_answer_over_its_limit_is_refused(run: Run, tmp_path: Path) -> None:
    """Somebody asks for more rows than one answer may hold; the connection goes on."""
    echo = EchoServer(tmp_path)
    echo.keeps = True

    async def main() -> None:
        async with plain_client(echo) as client:
            client.say(call(1))
            await until(lambda: bool(echo.calls))
            made, _, respond = echo.calls[0]
            echo.answer(made, respond, bytes((32 << 20) + 1))
            echo.keeps = False
            client.say(call(2))
            first, second = await client.hear_replies(2)
            assert isinstance(first.outcome, Refused)
            assert first.outcome.code == "limit-exceeded"
            assert first.outcome.hint == "ask for less at once"
            assert second.outcome == Answered(answer=b"hello")

    run(serve(echo, main))


def test_calls_over_the_limit_wait_unread(run: Run, tmp_path: Path) -> None:
    """A client sends far more calls than may be in flight: the rest waits, none is lost."""
    echo = EchoServer(tmp_path, RpcLimits(calls_in_flight_max=4))
    echo.keeps = True

    async def main() -> None:
        async with plain_client(echo) as client, plain_client(echo) as other:
            client.say(*(call(n, bytes(2000)) for n in range(1, 2001)))
            await until(lambda: len(echo.calls) == 4)
            await asyncio.sleep(0.05)
            assert len(echo.calls) == 4
            other.say(call(1, b"other"))
            await until(lambda: len(echo.calls) == 5)
            echo.keeps = False
            for made, _, respond in list(echo.calls):
                echo.answer(made, respond)
            replies = await client.hear_replies(2000)
            assert sorted(reply.number for reply in replies) == list(range(1, 2001))

    run(serve(echo, main))


def test_bytes_over_the_limit_wait_unread(run: Run, tmp_path: Path) -> None:
    """A client sends large requests faster than they commit: so many bytes are taken, no more."""
    echo = EchoServer(tmp_path, RpcLimits(in_flight_bytes_max=3 << 20))
    echo.keeps = True

    async def main() -> None:
        async with plain_client(echo) as client:
            client.say(*(call(n, bytes(1 << 20)) for n in range(1, 11)))
            await until(lambda: len(echo.calls) == 3)
            await asyncio.sleep(0.05)
            assert len(echo.calls) == 3
            echo.keeps = False
            for made, _, respond in list(echo.calls):
                echo.answer(made, respond, b"x")
            assert len(await client.hear_replies(10)) == 10

    run(serve(echo, main))


def test_calls_over_the_total_are_told_busy(run: Run, tmp_path: Path) -> None:
    """All clients together have too much in flight: the next call is told so at once."""
    echo = EchoServer(tmp_path, RpcLimits(in_flight_bytes_total_max=1 << 20))
    echo.keeps = True

    async def main() -> None:
        async with plain_client(echo) as one, plain_client(echo) as two:
            one.say(call(1, bytes(900_000)))
            await until(lambda: len(echo.calls) == 1)
            two.say(call(1, bytes(900_000)))
            [reply] = await two.hear_replies(1)
            assert isinstance(reply.outcome, Refused)
            assert reply.outcome.code == "busy"
            assert len(echo.calls) == 1
            one.writer.close()
            await asyncio.sleep(0.05)
            two.say(call(2, bytes(900_000)))
            await until(lambda: len(echo.calls) == 2)
            echo.answer(echo.calls[0][0], echo.calls[0][2])

    run(serve(echo, main))


def test_client_that_reads_slowly_slows_itself_alone(run: Run, tmp_path: Path) -> None:
    """A client asks for large answers and does not read them: few are made until it does."""
    echo = EchoServer(tmp_path, RpcLimits(queued_bytes_max=1 << 20))

    async def main() -> None:
        async with plain_client(echo) as client, plain_client(echo) as other:
            client.say(*(call(n, bytes(500_000)) for n in range(1, 16)))
            await asyncio.sleep(0.2)
            made = len(echo.calls)
            assert made < 12
            other.say(call(1, b"quick"))
            [reply] = await other.hear_replies(1)
            assert reply.outcome == Answered(answer=b"quick")
            assert len(await client.hear_replies(15)) == 15

    run(serve(echo, main))


def test_client_that_never_reads_is_cut(run: Run, tmp_path: Path) -> None:
    """A client asks and never reads, past the time limit, and past the bytes limit."""
    limits = RpcLimits(unread_s=0.1, sweep_s=0.02, unsent_bytes_max=4 << 20)
    echo = EchoServer(tmp_path, limits)

    async def main() -> None:
        async with plain_client(echo) as client:
            client.say(*(call(n, bytes(1_000_000)) for n in range(1, 4)))
            await until(lambda: len(echo.reports) == 1)
            assert "it took none of its answers for 0.1 s" in echo.reports[0]
        echo.keeps = True
        async with plain_client(echo) as client:
            client.say(*(call(n) for n in range(1, 21)))
            await until(lambda: len(echo.calls) >= 20)
            for made, _, respond in echo.calls[-20:]:
                echo.answer(made, respond, bytes(1 << 20))
            await until(lambda: len(echo.reports) == 2)
            assert "over 4194304 bytes of answers wait to be read" in echo.reports[1]

    run(serve(echo, main))


def test_client_that_reads_on_and_on_is_not_cut(run: Run, tmp_path: Path) -> None:
    """At every look the server's buffer is full, but in between the client has read some of it."""
    echo = EchoServer(tmp_path, RpcLimits(unread_s=0.1, sweep_s=60.0))

    async def main() -> None:
        async with plain_client(echo) as client:
            client.say(*(call(n, bytes(400_000)) for n in range(40)))
            [session] = echo.server._sessions.open
            for _ in range(6):
                await until(lambda: session.stream.is_stuck)
                session.look(0.09)
                assert len(await client.hear_replies(5)) == 5
            await until(lambda: session.stream.is_stuck)
            session.look(0.09)
            assert echo.reports == []
            session.look(0.09)
            session.look(0.09)
            assert len(echo.reports) == 1

    run(serve(echo, main))


def test_greeting_is_waited_for_so_long(run: Run, tmp_path: Path) -> None:
    """Something connects and says nothing."""
    echo = EchoServer(tmp_path, RpcLimits(greeting_s=0.1, sweep_s=0.02))

    async def main() -> None:
        async with plain_client(echo, greet=False) as client:
            assert await client.hear_goodbye() == Goodbye(
                code="timed-out", text="no greeting within 0.1 s"
            )

    run(serve(echo, main))


def test_request_must_be_finished_in_time(run: Run, tmp_path: Path) -> None:
    """A client sends half a request and stops, while another call of it is in flight."""
    echo = EchoServer(tmp_path, RpcLimits(message_s=0.1, sweep_s=0.02))
    echo.keeps = True

    async def main() -> None:
        async with plain_client(echo) as client:
            client.say(call(1))
            await until(lambda: bool(echo.calls))
            client.writer.write(encode_frames(encode(call(2)))[0][:-1])
            goodbye = await client.hear_goodbye()
            assert goodbye.text == "a request was not finished within 0.1 s"

    run(serve(echo, main))


def test_idle_connection_is_ended(run: Run, tmp_path: Path) -> None:
    """A client asks nothing for long; one that waits for an answer is not idle."""
    echo = EchoServer(tmp_path, RpcLimits(idle_s=0.15, sweep_s=0.02))
    echo.keeps = True

    async def main() -> None:
        async with plain_client(echo) as idle, plain_client(echo) as waiting:
            waiting.say(call(1))
            assert (await idle.hear_goodbye()).text == "nothing was asked for too long"
            await asyncio.sleep(0.1)
            echo.answer(echo.calls[0][0], echo.calls[0][2])
            assert len(await waiting.hear_replies(1)) == 1
        assert echo.reports == []

    run(serve(echo, main))


def test_connections_are_limited(run: Run, tmp_path: Path) -> None:
    """One connection more than there may be: it is told so, the others go on."""
    echo = EchoServer(tmp_path, RpcLimits(connections_max=2))

    async def main() -> None:
        async with (
            plain_client(echo) as one,
            plain_client(echo),
            plain_client(echo, greet=False) as third,
        ):
            assert await third.hear_goodbye() == Goodbye(
                code="limit-exceeded", text="too many connections; at most 2"
            )
            one.say(call(1))
            assert len(await one.hear_replies(1)) == 1
        await until(lambda: not echo.server._sessions.open)
        async with plain_client(echo) as again:
            again.say(call(1))
            assert len(await again.hear_replies(1)) == 1

    run(serve(echo, main))


def test_crowd_of_connections_is_just_ended(run: Run, tmp_path: Path) -> None:
    """Far more connections than there may be: none is kept, and the server goes on."""
    echo = EchoServer(tmp_path, RpcLimits(connections_max=1))

    async def main() -> None:
        crowd = [PlainClient(*await asyncio.open_unix_connection(echo.path)) for _ in range(150)]
        for member in crowd[1:]:
            heard = await member.hear()
            assert heard is None or isinstance(heard, Goodbye)
        for member in crowd:
            member.writer.close()
        await asyncio.sleep(0.05)
        async with plain_client(echo) as client:
            client.say(call(1))
            assert len(await client.hear_replies(1)) == 1

    run(serve(echo, main))


def test_one_user_cannot_take_all_connections(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's script opens connections without end; another user still gets one."""
    echo = EchoServer(tmp_path, RpcLimits(user_connections_max=2))
    users = iter([(1000, 100)] * 3 + [(1001, 100)])
    real = socket.socket.getsockopt

    def of_a_user(self: socket.socket, level: int, option: int, *size: int) -> Any:
        if option != socket.SO_PEERCRED:
            return real(self, level, option, *size)
        uid, gid = next(users)
        return b"".join(n.to_bytes(4, "little") for n in (1, uid, gid))

    async def main() -> None:
        async with plain_client(echo), plain_client(echo), plain_client(echo, greet=False) as third:
            goodbye = await third.hear_goodbye()
            assert goodbye.text == "too many connections of user 1000; at most 2"
            async with plain_client(echo) as other:
                other.say(call(1))
                assert len(await other.hear_replies(1)) == 1
                assert echo.calls[0][1].uid == 1001

    monkeypatch.setattr(socket.socket, "getsockopt", of_a_user)
    run_on_loop("asyncio", serve(echo, main))


def test_number_in_use_is_refused(run: Run, tmp_path: Path) -> None:
    """A client gives two calls in flight the same number; it could not tell their answers apart."""
    echo = EchoServer(tmp_path)
    echo.keeps = True

    async def main() -> None:
        async with plain_client(echo) as client:
            client.say(call(3), call(3))
            assert (await client.hear_goodbye()).text == "call number 3 is in use already"

    run(serve(echo, main))


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
    echo = EchoServer(tmp_path, RpcLimits(message_s=0.1, greeting_s=0.1, idle_s=0.3, sweep_s=0.02))
    rng = random.Random(20)
    good = b"".join(
        frame
        for message in (GREETING, call(1), call(2, bytes(300)), call(3, speaks_for=(1, 1)))
        for frame in encode_frames(encode(message))
    )

    async def one(spoilt: bytes) -> None:
        async with plain_client(echo, greet=False) as client:
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
            assert sum(s.held_bytes for s in echo.server._sessions.open) < 1 << 20
        async with plain_client(echo) as client:
            client.say(call(1))
            assert len(await client.hear_replies(1)) == 1
        await until(lambda: not echo.server._sessions.open)
        assert echo.server._sessions.in_flight_bytes == 0

    run(serve(echo, main))


def test_many_large_unfinished_requests_are_bounded(run: Run, tmp_path: Path) -> None:
    """Clients send all but the last byte of large requests: the largest holders are cut."""
    echo = EchoServer(tmp_path, RpcLimits(held_bytes_total_max=10 << 20, sweep_s=0.02))
    stream = b"".join(encode_frames(encode(call(1, bytes(4 << 20)))))[:-1]

    async def main() -> None:
        clients = []
        for _ in range(6):
            client = PlainClient(*await asyncio.open_unix_connection(echo.path))
            client.say(GREETING)
            await client.hear()
            client.writer.write(stream)
            clients.append(client)
        await until(lambda: any("are held for it" in report for report in echo.reports))
        await asyncio.sleep(0.1)
        assert sum(s.held_bytes for s in echo.server._sessions.open) <= 10 << 20
        for client in clients:
            client.writer.transport.abort()

    run(serve(echo, main))
