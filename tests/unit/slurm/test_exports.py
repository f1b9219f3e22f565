"""What of the submitter's environment goes with a job."""

from __future__ import annotations

import pytest

from spur.slurm.exports import encode_environment, exported

HERE = {b"A": b"1", b"B": b"2", b"SLURM_SUBMIT_DIR": b"/home/u1"}
SLURM = {b"SLURM_SUBMIT_DIR": b"/home/u1"}


@pytest.mark.parametrize(
    ("export", "expected"),
    [
        (None, HERE),
        (b"ALL", HERE),
        (b"ALL,B=two,C=", {**HERE, b"B": b"two", b"C": b""}),
        (b"NONE", SLURM),
        (b"NIL", {}),
        (b"A,X=9", {**SLURM, b"A": b"1", b"X": b"9"}),
        (b"A=1,NOSUCH", {**SLURM, b"A": b"1"}),
        (b"L='a,b',M=\"c\"", {**SLURM, b"L": b"a,b", b"M": b"c"}),
        (b"E=a=b", {**SLURM, b"E": b"a=b"}),
        (b"", SLURM),
    ],
)
def test_export_chooses(export: bytes | None, expected: dict[bytes, bytes]) -> None:
    """Someone says which variables their job shall see."""
    assert exported(HERE, export) == expected


def test_environment_is_kept_to_the_byte() -> None:
    """A variable holds a line break and what is no text."""
    assert encode_environment({b"A": b"x\ny", b"B": b"\xff"}) == b"A=x\ny\0B=\xff\0"
