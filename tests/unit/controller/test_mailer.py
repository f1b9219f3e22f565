"""Mails that a leader hands to a program, down to a mail server."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from spur.controller import mailer as mailing
from spur.controller.mailer import Mailer, mail_arguments
from spur.events.envelope import AttachmentRef
from spur.projections.attachments import pack_attachments
from spur.projections.mails import SendMail
from spur.projections.state import State
from spur.slurm.mailtypes import mail_content, read_mail_content
from spur.testing.hall import Hall
from spur.values.ids import JobId

DIGEST = bytes(32)

SENDER = """\
#!{python}
import smtplib, sys
with smtplib.SMTP("127.0.0.1", {port}) as server:
    server.sendmail("spur@localhost", sys.argv[3], "Subject: " + sys.argv[2] + "\\n\\n")
"""


class Server:
    """A mail server that takes what it is given."""

    def __init__(self) -> None:
        self.letters: list[tuple[str, str]] = []
        """To whom, and the subject."""
        self.came = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 here\r\n")
        to = ""
        while line := (await reader.readline()).decode().strip():
            if line.upper().startswith("RCPT TO:"):
                to = line[8:].strip("<>")
            if line.upper() == "DATA":
                writer.write(b"354 go on\r\n")
                subject = (await reader.readline()).decode().strip()
                while await reader.readline() != b".\r\n":
                    pass
                self.letters.append((to, subject))
                self.came.set()
            writer.write(b"221 bye\r\n" if line.upper() == "QUIT" else b"250 well\r\n")
            await writer.drain()
        writer.close()


def effect(kinds: Sequence[str], *, is_task: bool = False) -> SendMail:
    packed = pack_attachments([AttachmentRef("mail", 9, DIGEST)])
    subjects = tuple(f"Slurm Job_id=5 {kind}" for kind in kinds)
    return SendMail(None, JobId(5), 0, tuple(kinds), subjects, is_task, packed)


def reading(content: bytes | None) -> Callable[..., None]:
    return lambda digests, done: done([content])


@pytest.fixture
def state() -> State:
    return Hall().state


def sent(
    state: State,
    content: bytes | None,
    *effects: SendMail,
    monkeypatch: pytest.MonkeyPatch,
    parameters: dict[str, str] | None = None,
) -> list[list[str]]:
    """Return how the program is called for these."""
    calls: list[list[str]] = []

    async def run(arguments: list[str], said: bytes, variables: dict[str, str]) -> None:
        calls.append(arguments[1:])

    given = parameters or {}
    monkeypatch.setattr(mailing, "_run", run)
    monkeypatch.setattr(mailing, "parameter_of", lambda state, name: given.get(name, ""))

    async def story() -> None:
        mailer = Mailer(lambda: state, reading(content))
        for each in effects:
            mailer.put(each)
        for _ in range(10):
            await asyncio.sleep(0)
        await mailer.stop()

    asyncio.run(story())
    return calls


def test_the_first_kind_that_was_asked_for_is_sent(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job fails whose owner wants to hear of ends alone; another wants beginnings."""
    end = effect(("FAIL", "END"))
    assert sent(state, b"END\na@b", end, monkeypatch=monkeypatch) == [
        ["-s", "Slurm Job_id=5 END", "a@b"]
    ]
    assert sent(state, b"BEGIN\na@b", end, monkeypatch=monkeypatch) == []
    assert sent(state, None, end, monkeypatch=monkeypatch) == []


def test_tasks_are_written_about_where_that_is_asked_for(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ARRAY_TASKS, or the array as a whole."""
    task = effect(("END",), is_task=True)
    assert sent(state, b"END\na@b", task, monkeypatch=monkeypatch) == []
    assert len(sent(state, b"ARRAY_TASKS,END\na@b", task, monkeypatch=monkeypatch)) == 1


def test_the_owner_is_written_to_when_nobody_is_named(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the name of the account, with the site's domain."""
    mail = effect(("END",))
    assert sent(state, b"END\n", mail, monkeypatch=monkeypatch)[0][2] == "root"
    domain = {"MailDomain": "example.org"}
    (call,) = sent(state, b"END\n", mail, monkeypatch=monkeypatch, parameters=domain)
    assert call[2] == "root@example.org"


@pytest.mark.parametrize(
    ("program", "arguments", "said"),
    [
        ("/bin/mail", ["/bin/mail", "-s", "a b", "x@y"], b""),
        (
            "/usr/sbin/sendmail",
            ["/usr/sbin/sendmail", "-i", "--", "x@y"],
            b"To: x@y\nSubject: a b\n\n",
        ),
    ],
)
def test_programs_are_called_as_they_are_used_to(
    program: str, arguments: list[str], said: bytes
) -> None:
    """mail(1) takes a subject; sendmail a message. A job's name adds no line and no option."""
    assert mail_arguments(program, "a\nb", "x@y\n") == (arguments, said)
    assert mail_arguments("/bin/mail", "a", "-rx@y")[0][3] == "rx@y"


def test_a_mail_reaches_the_server_once(
    tmp_path: Path, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through a program that speaks SMTP."""

    async def story() -> list[tuple[str, str]]:
        server = Server()
        listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        program = tmp_path / "mail"
        program.write_text(SENDER.format(python=sys.executable, port=port))
        program.chmod(0o755)
        given = {"MailProg": str(program)}
        monkeypatch.setattr(mailing, "parameter_of", lambda state, name: given.get(name, ""))
        mailer = Mailer(lambda: state, reading(b"END\nada@example.org"))
        mailer.put(effect(("END",)))
        await asyncio.wait_for(server.came.wait(), 20)
        await mailer.stop()
        listener.close()
        return server.letters

    assert asyncio.run(story()) == [("ada@example.org", "Subject: Slurm Job_id=5 END")]


@pytest.mark.parametrize(
    ("types", "user", "content"),
    [
        (b"END,fail", b"a@b", b"END,FAIL\na@b"),
        (b"ALL", b"", b"INVALID_DEPEND,BEGIN,END,FAIL,REQUEUE,STAGE_OUT\n"),
        (b"NONE", b"a@b", b""),
    ],
)
def test_what_is_asked_for_is_kept_apart(types: bytes, user: bytes, content: bytes) -> None:
    """--mail-type and --mail-user, in an attachment of their own."""
    found = mail_content((("mail-type", types), ("mail-user", user)))
    assert found == content
    if found:
        events, whom = read_mail_content(found)
        assert whom == user.decode()
        assert "END" in events
