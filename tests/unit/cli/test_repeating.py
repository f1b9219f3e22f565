"""How long `--iterate` waits."""

from __future__ import annotations

import time

import pytest

from spur.slurm.wording import SlurmError
from spur_cli.slurm.repeating import repeat, seconds_between


@pytest.mark.parametrize(("text", "seconds"), [("5", 5), (" +7x", 7), ("9" * 30, 4_294_967_295)])
def test_number_at_the_beginning_counts(
    text: str, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No number is so great that no clock could wait for it."""
    assert seconds_between(text, "squeue") == seconds
    waits: list[float] = []

    def end(wait_s: float) -> None:
        waits.append(wait_s)
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", end)
    with pytest.raises(KeyboardInterrupt):
        repeat(seconds, lambda: 0)
    assert waits == [seconds]


@pytest.mark.parametrize("text", ["", "0", "x5", "-1"])
def test_no_number_is_refused(text: str) -> None:
    """It is typed wrong."""
    with pytest.raises(SlurmError):
        seconds_between(text, "squeue")
