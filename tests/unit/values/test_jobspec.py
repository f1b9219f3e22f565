"""Specs, texts, shapes and shares."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from spur.testing.hall import ASK
from spur.values.jobspec import JobText, decode_text, encode_text, shape_of
from spur.values.states import HOLD_REASONS, Hold
from spur.values.tres import GresAsk, Per, gpu_indexes, gpu_mask


@given(st.builds(JobText))
def test_a_text_comes_back_as_it_was(text: JobText) -> None:
    """Paths and arguments are any bytes that the kernel gave."""
    assert decode_text(encode_text(text)) == text


def test_what_is_no_text_is_refused() -> None:
    """An attachment of another make."""
    with pytest.raises(msgspec.MsgspecError):
        decode_text(b"\xc1")


def test_equal_asks_have_one_shape_and_others_another() -> None:
    """Jobs are grouped by what they ask for, on every replica alike."""
    assert shape_of(replace(ASK)) == shape_of(ASK)
    assert len(shape_of(ASK)) == 8
    others = (
        replace(ASK, tasks=2),
        replace(ASK, features="a"),
        replace(ASK, nodes_required="a"),
        replace(ASK, gres=(GresAsk("gpu", "", 1, Per.NODE),)),
    )
    assert len({shape_of(ask) for ask in (ASK, *others)}) == 5


@given(st.sets(st.integers(0, 63)))
def test_a_mask_holds_the_devices_it_was_made_of(indexes: set[int]) -> None:
    """A node has at most 64 devices, so a mask is one integer."""
    ascending = tuple(sorted(indexes))
    assert gpu_indexes(gpu_mask(ascending)) == ascending
    assert gpu_mask(ascending) < 1 << 64


def test_every_hold_shows_a_reason() -> None:
    """A held job says why it waits."""
    assert set(HOLD_REASONS) == set(Hold) - {Hold.NONE}
