"""An attribute is another for a while, and then what it was."""

from __future__ import annotations

import pytest

from spur.testing.replaced import replaced


class Clock:
    hour = 9

    def strike(self) -> str:
        return "ding" * self.hour


def test_replaced_attributes_come_back_even_after_an_error() -> None:
    """A test fails while a limit is smaller: the next test must not meet the small one."""
    seen = []

    def fail() -> None:
        with replaced(Clock, hour=1, strike=lambda self: "dong"):
            seen.append((Clock.hour, Clock().strike()))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert seen == [(1, "dong")]
    assert (Clock.hour, Clock().strike()) == (9, "ding" * 9)


def test_replacing_what_is_not_there_is_refused() -> None:
    """Somebody renames a method: the fault planted in it must not vanish silently."""
    with pytest.raises(AttributeError, match="has no minute"), replaced(Clock, minute=1, hour=2):
        pass
    assert Clock.hour == 9
