"""Entries as rows: everything that is in them, and nothing private."""

from __future__ import annotations

import msgspec
import pytest

from spur.controller.logrows import entry_row, event_rows, format_time, full_row
from spur.events.codec import UnreadableRecord, decode_envelope
from spur.events.envelope import AttachmentRef, Entry, EntryKind
from spur.testing.builders import BIRTH_NS, SMALL_CONFIG, Cluster
from spur.values.config import ConfigFile
from spur.values.members import ByWhom, Member, Membership
from spur.wire.cluster import AcceptClock, AddHost, Reconfigure


def story() -> Cluster:
    """Return a cluster that was configured, and got a host."""
    cluster = Cluster()
    cluster.ask(Reconfigure(files=(ConfigFile("spur.toml", SMALL_CONFIG),)))
    cluster.ask(AddHost("login1", "login"))
    return cluster


def with_attachment(entry: Entry, ref: AttachmentRef) -> Entry:
    """Return the entry as it would be with an attachment."""
    envelope, _ = decode_envelope(entry.body, entry.index)
    body = msgspec.msgpack.encode(msgspec.structs.replace(envelope, attachments=(ref,)))
    return Entry(entry.index, entry.term, entry.kind, body)


def test_time_is_told_to_the_nanosecond() -> None:
    """Someone compares two stamps a microsecond apart."""
    assert format_time(BIRTH_NS + 1_000) == "2026-09-21T14:13:20.000001000Z"


def test_entry_is_one_line_with_who_asked_what() -> None:
    """An administrator wants to know who added a host."""
    entry = story().entries[-1]
    assert entry_row(entry) == {
        "index": 3,
        "term": 1,
        "time": "2026-09-21T14:13:20.000002000Z",
        "command": "host.add",
        "actor": "uid 0 on controller host 0 (socket)",
        "events": ["host.added"],
        "attachments": [],
    }


def test_entry_without_events_says_what_it_is() -> None:
    """Someone reads a log across an election: no-op entries have no actor and no time."""
    row = entry_row(Entry(7, 3, EntryKind.NOOP, b""))
    assert (row["command"], row["time"], row["actor"]) == ("no-op", None, None)
    assert list(event_rows(Entry(7, 3, EntryKind.NOOP, b""))) == []


def test_event_row_names_the_fields() -> None:
    """Someone wants to see what an event says."""
    (row,) = event_rows(story().entries[-1])
    assert row["event"] == "host.added"
    assert row["position"] == 0
    assert row["fields"]["name"] == "login1"


def test_private_text_is_redacted() -> None:
    """A batch script rides beside an entry: its name and size are shown, never its content."""
    ref = AttachmentRef("script", 1234, b"\xab" * 32)
    entry = with_attachment(story().entries[-1], ref)
    assert entry_row(entry)["attachments"] == ["script (1234 B)"]
    (shown,) = full_row(entry, bytes(32), lambda _: False)["attachments"]
    assert shown == {
        "name": "script",
        "size": 1234,
        "digest": "ab" * 32,
        "content": "(redacted)",
    }


def test_erased_text_says_so() -> None:
    """A user's script was erased: the entry is shown, and that its text is gone."""
    ref = AttachmentRef("script", 1234, b"\xab" * 32)
    entry = with_attachment(story().entries[-1], ref)
    (shown,) = full_row(entry, bytes(32), lambda digest: digest == ref.digest)["attachments"]
    assert shown["content"] == "(erased)"


def test_full_row_can_be_written_as_json() -> None:
    """An auditor takes the whole log along: every entry of a story is written."""
    cluster = story()
    cluster.ask(AcceptClock())
    for entry in cluster.entries[1:]:
        row = full_row(entry, bytes(32), lambda _: False)
        assert msgspec.json.decode(msgspec.json.encode(row)) == row
        assert row["actor"]["host_role"] == "controller"


def test_full_row_of_a_membership_names_the_members() -> None:
    """Someone asks who the members at birth were."""
    membership = Membership((Member(1, b"\x01" * 16, True, "c1:6821", "c1:6816", "c1"),))
    body = membership.encode(ByWhom(5, 1000, 7, "admin"))
    row = full_row(Entry(1, 1, EntryKind.MEMBERSHIP, body), bytes(32), lambda _: False)
    assert row["kind"] == "membership"
    assert row["members"] == [
        {
            "id": 1,
            "disk_id": "01" * 16,
            "voter": True,
            "raft_address": "c1:6821",
            "rpc_address": "c1:6816",
            "name": "c1",
        }
    ]
    assert row["by_whom"] == {"time_ns": 5, "uid": 1000, "host_id": 7, "host_role": "admin"}


def test_unreadable_entry_is_named() -> None:
    """A newer release wrote the log: the reader stops at the entry and says which it is."""
    with pytest.raises(UnreadableRecord, match="entry 9: envelope cannot be read"):
        entry_row(Entry(9, 1, EntryKind.EVENTS, b"\xc1"))
