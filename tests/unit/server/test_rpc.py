"""The RPC server over real sockets: who calls, what is answered, and what is cut."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from pathlib import Path

import pytest

from spur.events.envelope import Actor
from spur.testing.loops import Run, run_on_loop, until
from spur.testing.rpc import (
    CLUSTER,
    GREETING,
    EchoServer,
    call,
    plain_client,
    serve,
)
from spur.values.errors import InvariantBroken, OperatorFault
from spur.wire.calls import (
    Answered,
    Goodbye,
    Greeting,
    Reply,
    Welcome,
    encode,
)
from spur.wire.frames import encode_frames


def test_user_of_this_host_is_known_by_the_kernel(run: Run, tmp_path: Path) -> None:
    """Someone runs a command on the controller: nobody asks for a password, the kernel knows."""
    echo = EchoServer(tmp_path)

    async def main() -> None:
        async with plain_client(echo, greet=False) as client:
            client.say(GREETING)
            assert await client.hear() == Welcome(
                version=1, cluster_id=CLUSTER, replica=2, incarnation=1, index=7
            )
            client.say(call(1, b"who am I"))
            answered = Answered(answer=b"who am I")
            assert await client.hear() == Reply(number=1, incarnation=1, index=8, outcome=answered)
        assert [actor for _, actor, _ in echo.calls] == [
            Actor(os.getuid(), os.getgid(), host_id=2, host_role="controller", via="socket")
        ]
        assert stat.S_IMODE(os.stat(echo.path).st_mode) == 0o666

    run(serve(echo, main))
    assert not os.path.exists(echo.path)


def test_answers_may_come_in_any_order(run: Run, tmp_path: Path) -> None:
    """Many calls are in flight on one connection and are answered later, the last one first."""
    echo = EchoServer(tmp_path)
    echo.keeps = True

    async def main() -> None:
        async with plain_client(echo) as client:
            client.say(*(call(n, bytes([n])) for n in range(1, 33)))
            await until(lambda: len(echo.calls) == 32)
            for made, _, respond in reversed(echo.calls):
                echo.answer(made, respond)
            replies = await client.hear_replies(32)
        assert [reply.number for reply in replies] == list(range(32, 0, -1))
        assert all(reply.outcome == Answered(answer=bytes([reply.number])) for reply in replies)

    run(serve(echo, main))


def test_large_request_and_answer_pass(run: Run, tmp_path: Path) -> None:
    """A script at its limit of megabytes goes there and back."""
    echo = EchoServer(tmp_path)
    large = bytes(range(256)) * 32_000

    async def main() -> None:
        async with plain_client(echo) as client:
            client.say(call(1, large))
            [reply] = await client.hear_replies(1)
            assert reply.outcome == Answered(answer=large)

    run(serve(echo, main))


def test_call_may_come_in_one_piece_with_the_greeting(run: Run, tmp_path: Path) -> None:
    """A client does not wait for its welcome, and its first call is longer than any greeting."""
    echo = EchoServer(tmp_path)

    async def main() -> None:
        async with plain_client(echo, greet=False) as client:
            client.say(GREETING, call(1, bytes(5_000)))
            assert isinstance(await client.hear(), Welcome)
            [reply] = await client.hear_replies(1)
            assert reply.outcome == Answered(answer=bytes(5_000))

    run(serve(echo, main))


def test_root_and_the_daemons_own_user_speak_for_others(run: Run, tmp_path: Path) -> None:
    """A call on the Unix socket says it is for user 1000."""
    echo = EchoServer(tmp_path)

    async def main() -> None:
        async with plain_client(echo) as client:
            client.say(call(1, speaks_for=(os.getuid(), os.getgid())))
            client.say(call(2, speaks_for=(77777, 100)))
            first, second = await client.hear_replies(2)
            assert isinstance(first.outcome, Answered)
            assert isinstance(second.outcome, Answered)
            assert echo.calls[1][1] == Actor(77777, 100, 2, "controller", "socket")

    run(serve(echo, main))


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
    echo = EchoServer(tmp_path)

    async def main() -> None:
        for _ in range(2):
            async with plain_client(echo, greet=False) as client:
                client.writer.write(sent)
                assert (await client.hear_goodbye()).text.startswith(sentence)
        async with plain_client(echo) as client:
            client.say(call(1))
            assert len(await client.hear_replies(1)) == 1
        assert len(echo.reports) == 1
        assert sentence in echo.reports[0]

    run(serve(echo, main))


def test_cut_request_is_said(run: Run, tmp_path: Path) -> None:
    """The client dies in the middle of sending."""
    echo = EchoServer(tmp_path)

    async def main() -> None:
        async with plain_client(echo) as client:
            client.writer.write(encode_frames(encode(call(1)))[0][:-1])
            client.writer.write_eof()
            assert "cut inside a request" in (await client.hear_goodbye()).text

    run(serve(echo, main))


def test_answering_twice_is_our_fault(run: Run, tmp_path: Path) -> None:
    """The handler answers a call twice: that is a fault of ours, and not hidden."""
    echo = EchoServer(tmp_path)

    async def main() -> None:
        async with plain_client(echo) as client:
            client.say(call(1))
            await client.hear_replies(1)
            made, _, respond = echo.calls[0]
            with pytest.raises(InvariantBroken, match="call 1 was answered twice"):
                echo.answer(made, respond)

    run(serve(echo, main))


def test_answer_to_a_client_that_left_goes_nowhere(run: Run, tmp_path: Path) -> None:
    """The client gave up before its entry committed."""
    echo = EchoServer(tmp_path)
    echo.keeps = True

    async def main() -> None:
        async with plain_client(echo) as client:
            client.say(call(1))
            await until(lambda: bool(echo.calls))
        await asyncio.sleep(0.05)
        echo.answer(echo.calls[0][0], echo.calls[0][2])

    run(serve(echo, main))


def test_stopping_server_says_goodbye(run: Run, tmp_path: Path) -> None:
    """The controller is stopped while clients are connected."""
    echo = EchoServer(tmp_path)

    async def main() -> None:
        async with plain_client(echo) as client:
            closing = asyncio.ensure_future(echo.server.close())
            assert await client.hear_goodbye() == Goodbye(
                code="ask-again", text="this daemon stops"
            )
            client.writer.close()
            await closing

    run(serve(echo, main))


def test_socket_in_use_is_said(tmp_path: Path) -> None:
    """A second controller is started on the same directory; a socket left by a crash is no bar."""
    echo, second = EchoServer(tmp_path), EchoServer(tmp_path)
    with socket.socket(socket.AF_UNIX) as crashed:
        crashed.bind(echo.path)

    async def main() -> None:
        with pytest.raises(OperatorFault, match="another process listens on this socket already"):
            await second.server.start_unix(echo.path)
        async with plain_client(echo) as client:
            client.say(call(1))
            assert len(await client.hear_replies(1)) == 1

    run_on_loop("asyncio", serve(echo, main))


def test_socket_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    """The directory of the socket does not exist."""
    echo = EchoServer(tmp_path / "absent")

    async def main() -> None:
        with pytest.raises(OperatorFault, match="cannot listen on this socket"):
            await echo.server.start_unix(echo.path)

    asyncio.run(main())
