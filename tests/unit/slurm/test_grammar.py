"""Values of Slurm's files: what is taken, and what is refused in which words."""

from __future__ import annotations

from typing import Any

import pytest

from spur.slurm import grammar
from spur.slurm.grammar import Grammar, GresCount
from spur.values.config import ControllerHost, OverSubscribe


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (grammar.BOOLEAN, "yes", True),
        (grammar.BOOLEAN, "Down", False),
        (grammar.COUNT16, "unlimited", None),
        (grammar.COUNT32, "4k", 4096),
        (grammar.MEMORY, "UNLIMITED", None),
        (grammar.MEMORY, "0", None),
        (grammar.WORDS, "a,b,a", ("a", "b")),
        (grammar.WORDS, "ALL", ()),
        (grammar.LOWER_WORDS, "Chem,BIO", ("chem", "bio")),
        (grammar.HOSTS, "n[1-2] n3", "n[1-2],n3"),
        (grammar.DEVICES, "/dev/nvidia[0-1],/dev/x", ("/dev/nvidia0", "/dev/nvidia1", "/dev/x")),
        (grammar.GRES, "gpu:a100:4", (GresCount("gpu", "a100", 4),)),
        (grammar.GRES, "gpu", (GresCount("gpu", "", 1),)),
        (
            grammar.GRES,
            "gpu:2(S:0-1),shard:8",
            (GresCount("gpu", "", 2), GresCount("shard", "", 8)),
        ),
        (
            grammar.GRES,
            "bandwidth:lustre:no_consume:4G",
            (GresCount("bandwidth", "lustre", 4 << 30),),
        ),
        (grammar.CONTROLLER, "ctl", ControllerHost("ctl", "ctl")),
        (grammar.CONTROLLER, "ctl(10.0.0.1)", ControllerHost("ctl", "10.0.0.1")),
        (grammar.OVER_SUBSCRIBE, "yes", (OverSubscribe.YES, 4)),
        (grammar.OVER_SUBSCRIBE, "FORCE:1", (OverSubscribe.FORCE, 1)),
        (grammar.OVER_SUBSCRIBE, "exclusive", (OverSubscribe.EXCLUSIVE, 1)),
        (grammar.PREEMPT_MODE, "gang,suspend", "GANG,SUSPEND"),
        (grammar.LIMIT_TIME, "INFINITE", None),
        (grammar.LIMIT_TIME, "7-0", 604_800),
        (grammar.PORTS, "[7000-7003]", "[7000-7003]"),
        (grammar.NODE_START, "Unknown", "UNKNOWN"),
    ],
)
def test_a_value_means_what_the_manual_says(kind: Grammar, text: str, value: Any) -> None:
    """Forms that sites write."""
    assert kind.parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [
        (grammar.BOOLEAN, "maybe", "it takes YES or NO"),
        (grammar.COUNT16, "-1", "a whole number from 0 to 65535 or UNLIMITED"),
        (grammar.COUNT16, "1.5", "a whole number"),
        (grammar.COUNT16, "70000", "a whole number from 0 to 65535"),
        (grammar.MEMORY, "lots", "it takes MiB, or UNLIMITED"),
        (grammar.WORDS, "a,,b", "words with commas"),
        (grammar.TEXT, "a\x07b", "without control characters"),
        (grammar.NAME, "-x", "a letter or digit first"),
        (grammar.HOSTS, "n[3-1]", "runs backwards"),
        (grammar.HOSTS, ",", "it takes a host list"),
        (grammar.FEATURES, "a&b", "without blanks and any of"),
        (grammar.GRES, "gpu:a:b:4", r"name\[:type\]\[:count\]"),
        (grammar.GRES, "4", r"name\[:type\]\[:count\]"),
        (grammar.CONTROLLER, "ctl(", "a host name, or name"),
        (grammar.OVER_SUBSCRIBE, "YES:1", "it takes NO, YES"),
        (grammar.OVER_SUBSCRIBE, "NO:2", "it takes NO, YES"),
        (grammar.OVER_SUBSCRIBE, "FORCE:many", "it takes NO, YES"),
        (grammar.PREEMPT_MODE, "KILL", "with commas between them"),
        (grammar.LIMIT_TIME, "tomorrow", "days-"),
        (grammar.LIMIT_TIME, "0", "at least one minute"),
        (grammar.PORTS, "http", "it takes a port"),
        (grammar.PARTITION_STATE, "SIDEWAYS", "it takes UP, DOWN, DRAIN or INACTIVE"),
        (grammar.DEVICES, "/dev/x[1-", "brackets do not match"),
    ],
)
def test_a_malformed_value_is_refused_with_what_is_right(
    kind: Grammar, text: str, why: str
) -> None:
    """Slips of the pen; each is told what it takes."""
    with pytest.raises(ValueError, match=why):
        kind.parse(text)
