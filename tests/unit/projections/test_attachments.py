"""Attachments in short, and the bytes that rows keep alive."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spur.events.envelope import AttachmentRef
from spur.projections.attachments import (
    ATTACHMENT_NAMES,
    BlobBytes,
    pack_attachments,
    size_of,
    unpack_attachments,
)
from spur.testing.hall import Hall, submission
from spur.values.arrays import TaskSet

REFERENCES = st.lists(
    st.builds(
        AttachmentRef,
        st.sampled_from(ATTACHMENT_NAMES),
        st.integers(0, (1 << 32) - 1),
        st.binary(min_size=32, max_size=32),
    )
)


@given(REFERENCES)
def test_packed_attachments_come_back_as_they_were(references: list[AttachmentRef]) -> None:
    """A job's row holds its references in a hundred bytes."""
    packed = pack_attachments(references)
    assert unpack_attachments(packed) == tuple(references)
    assert len(packed) == 37 * len(references)
    assert size_of(packed) == sum(reference.size for reference in references)


def test_a_job_has_no_other_attachments() -> None:
    """A command with a fault lets one through."""
    with pytest.raises(KeyError, match="secrets"):
        pack_attachments([AttachmentRef("secrets", 1, bytes(32))])


def test_bytes_are_counted_while_a_row_keeps_them_alive() -> None:
    """An array's script is counted once, however many of its tasks have rows, and then goes."""
    hall = Hall()
    each = sum(len(attachment.content) for attachment in submission().attachments)
    state = hall.state
    array = hall.submit(tasks=TaskSet(((0, 2, 1),)))
    hall.submit()
    jobs = [hall.start(array) for _ in range(3)]
    assert (state.array_blob_bytes.of_user(1001), state.job_blob_bytes.of_user(1001)) == (
        each,
        each,
    )
    for job_id in jobs:
        hall.end(job_id)
    hall.tick(400)
    assert (state.array_blob_bytes.total, state.job_blob_bytes.total) == (0, each)
    assert state.array_blob_bytes.contents() == BlobBytes().contents()
