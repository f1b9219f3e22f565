"""What runs before a task orders by the lines that it writes."""

from __future__ import annotations

from spur.agent.taskprolog import obey


def test_lines_that_are_orders_are_obeyed() -> None:
    """A site's prolog sets a variable, takes one away, greets, and says more than that."""
    environment = {b"OLD": b"1", b"KEPT": b"1"}
    written = b"export NEW=a b=c\nunset OLD\nprint hello  there\nnoise\nexport\nexport X\n print x"
    assert obey(written, environment) == b"hello  there\nx\n"
    assert environment == {b"KEPT": b"1", b"NEW": b"a b=c"}
