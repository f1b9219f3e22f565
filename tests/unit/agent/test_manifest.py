"""Names and files of an attempt's directory: what is written is read, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spur.agent.manifest import (
    AttemptName,
    Outcome,
    decode_manifest,
    decode_outcome,
    directory_name,
    encode_outcome,
    parse_directory_name,
)
from spur.values.errors import OperatorFault
from spur.values.ids import JobId, NodeName

NUMBERS = st.integers(min_value=0, max_value=1 << 62)
NAMES = st.builds(
    AttemptName,
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True).map(NodeName),
    NUMBERS.map(JobId),
    NUMBERS,
    st.none() | NUMBERS,
    NUMBERS,
)


@given(NAMES)
def test_directory_names_its_attempt(name: AttemptName) -> None:
    """An agent that starts reads from the directories' names what an earlier one began."""
    assert parse_directory_name(directory_name(name)) == name


@pytest.mark.parametrize(
    "text",
    ["", "5", ".made-5.0.run.1.n1", "5.0.run.1.", "5.0.batch.1.n1", "5.0.run.1.-n", "x.0.1.1.n"],
)
def test_other_names_are_no_attempts(text: str) -> None:
    """Something else lies in the spool, or a directory that was never finished."""
    assert parse_directory_name(text) is None


def test_outcome_is_read_as_written() -> None:
    """A supervisor writes how its job ended, and the agent reads it."""
    outcome = Outcome("boot", False, 3, 0, True, 7, "why")
    assert decode_outcome(encode_outcome(outcome)) == outcome


def test_damaged_files_are_said_to_be_so() -> None:
    """A disk brought back something else."""
    with pytest.raises(OperatorFault, match="a manifest that cannot be read"):
        decode_manifest(b"\x93garbage")
    with pytest.raises(OperatorFault, match="an outcome that cannot be read"):
        decode_outcome(encode_outcome(Outcome("b", False, 0, 0, False, 0))[:-4])
