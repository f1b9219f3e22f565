"""Whom a controller takes for a member, while its log gets further."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spur.consensus.membership import Member
from spur.controller.company import Company


class Log:
    """What a company asks of its replica: the end of a log, and the members that it names."""

    def __init__(self) -> None:
        self.core = SimpleNamespace(last=20, me=1, is_leader=False)
        self.members: tuple[Member, ...] = (member(1), member(22))
        self.has_authority = True

    def neighbours(self) -> tuple[Member, ...]:
        return self.members


def member(number: int) -> Member:
    return Member(number, b"disk-%d" % number, True, f"h{number}:1", f"h{number}:2")


@pytest.fixture
def log() -> Log:
    return Log()


def test_one_added_since_the_last_tick_is_not_told_that_it_was_removed(
    log: Log, tmp_path: Path
) -> None:
    """The entry that adds it is here, and it knocks before the network knows of it."""
    known: list[Any] = []
    company = Company(tmp_path, cast(Any, log), lambda error: None)
    company.attach(cast(Any, SimpleNamespace(set_members=known.append, send=lambda *_: None)))
    before = company.newest_id()
    log.members += (member(40),)
    log.core.last = 26
    assert company.newest_id() == before < 40
    company.on_tick()
    assert len(known) == 1
    assert company.newest_id() >= 40
