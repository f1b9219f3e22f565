"""scrontab: what is handed in, shown and refused."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TypeVar

import pytest

from spur.slurm.wording import SlurmError
from spur.values.errors import Rejection
from spur.wire.crontabs import CrontabText, ReadCrontab, SetCrontab
from spur.wire.declare import Answer, Done, Request
from spur_cli.commands import scrontab
from spur_cli.slurm.session import Session

A = TypeVar("A", bound=Answer)


class Asking(Session):
    """A session that keeps what is asked."""

    def __init__(self, text: bytes | None = None, **environment: str) -> None:
        super().__init__("scrontab", environment)
        self.text = text
        self.asked: list[Request] = []
        self.refusal: Rejection | None = None

    def ask(self, request: Request, expected: type[A], **_: object) -> A | Rejection:
        if isinstance(request, ReadCrontab):
            text: Answer = CrontabText(self.text or b"", is_there=self.text is not None)
            assert isinstance(text, expected)
            return text
        if self.refusal is not None:
            return self.refusal
        self.asked.append(request)
        done: Answer = Done()
        assert isinstance(done, expected)
        return done

    @property
    def set(self) -> SetCrontab:
        (request,) = self.asked
        assert isinstance(request, SetCrontab)
        return request


def test_a_file_is_handed_in_with_a_job_for_each_entry(tmp_path: Path) -> None:
    """Options stand before their entry; the command is the script."""
    path = tmp_path / "tab"
    path.write_text("#SCRON --time=10 -J look\n*/5 * * * * ./look.sh -v\n@daily tidy\n")
    session = Asking(TZ="CET-1CEST,M3.5.0,M10.5.0/3")
    assert scrontab.carry_out(session, [str(path)]) == 0
    request = session.set
    assert request.zone == "CET-1CEST,M3.5.0,M10.5.0/3"
    assert request.attachments[0].content == path.read_bytes()
    first, second = request.entries
    assert (first.spec.name, first.spec.time_limit_s, second.spec.name) == ("look", 600, "tidy")
    names = [request.attachments[place].name for place in first.attachments]
    assert names == ["script", "environment", "text"]
    script = request.attachments[first.attachments[0]].content
    assert script.startswith(b"#!/bin/sh\n")
    assert script.endswith(b"\n./look.sh -v\n")


def test_it_is_read_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script writes it."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("@hourly x\n"))
    session = Asking(TZ="nowhere/at-all")
    assert scrontab.carry_out(session, ["-"]) == 0
    assert (session.set.zone, len(session.set.entries)) == ("UTC0", 1)


def test_it_is_shown_and_removed(capsys: pytest.CaptureFixture[str]) -> None:
    """As it was written."""
    session = Asking(b"@hourly x\n")
    assert scrontab.carry_out(session, ["-l"]) == 0
    assert capsys.readouterr().out == "@hourly x\n"
    assert scrontab.carry_out(session, ["-r"]) == 0
    assert (session.set.entries, session.set.attachments) == ((), ())


def test_an_editor_changes_it(tmp_path: Path) -> None:
    """What the editor leaves is handed in; without a change nothing is."""
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "@weekly y" >> "$1"\n')
    editor.chmod(0o755)
    session = Asking(b"@hourly x\n", EDITOR=str(editor))
    assert scrontab.carry_out(session, ["-e"]) == 0
    assert session.set.attachments[0].content == b"@hourly x\n@weekly y\n"
    idle = Asking(b"@hourly x\n", VISUAL="true")
    assert scrontab.carry_out(idle, ["-e"]) == 0
    assert idle.asked == []
    with pytest.raises(SlurmError, match="the editor failed"):
        scrontab.carry_out(Asking(None, EDITOR="false"), ["-e"])


@pytest.mark.parametrize(
    ("words", "text", "says"),
    [
        (["-l"], "", "no crontab for root"),
        (["-l", "-r"], "", "scrontab: error: only one of -e, -l, -r or a file can be given"),
        (["-u", "nosuch-user", "-l"], "", "scrontab: error: Invalid user: nosuch-user"),
        (["/nosuch"], "", "scrontab: error: /nosuch: No such file or directory"),
        (["-"], "x", "scrontab: error: Error on line 1: there is no command"),
        (["-"], "#SCRON x\n@daily y", "scrontab: error: line 2: invalid option x"),
    ],
)
def test_what_cannot_be_is_refused(
    words: list[str], text: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is asked then."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    monkeypatch.setattr("os.getuid", lambda: 0)
    session = Asking()
    with pytest.raises(SlurmError) as caught:
        scrontab.carry_out(session, words)
    assert caught.value.lines == (says,)
    assert session.asked == []


def test_a_refusal_is_told_in_slurms_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """The site has no crontabs."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("@daily y"))
    session = Asking()
    session.refusal = Rejection("cron-disabled", "no crontabs")
    with pytest.raises(SlurmError) as caught:
        scrontab.carry_out(session, ["-"])
    assert caught.value.lines == ("scrontab: error: scrontab is disabled on this cluster",)
