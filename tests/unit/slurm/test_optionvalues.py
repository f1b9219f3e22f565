"""Values of options: what Slurm takes, and its words for what it does not."""

from __future__ import annotations

import pytest

from spur.slurm import optionvalues as values
from spur.slurm.optionvalues import BadOption
from spur.values.arrays import ArrayAsk, TaskSet
from spur.values.jobspec import Sharing
from spur.values.tres import GresAsk, Per

GOOD = [
    (values.positive, "ntasks", "3", 3),
    (values.time_limit, "time", "5", 300),
    (values.memory, "mem", "2G", 2048),
    (values.memory, "mem", "0", values.MEMORY_ALL_MIB),
    (values.nodes, "nodes", "2", (2, 2)),
    (values.nodes, "nodes", "1-4", (1, 4)),
    (values.nodes, "nodes", "1k", (1024, 1024)),
    (values.partitions, "partition", "debug,long,debug", ("debug", "long")),
    (values.nice, "nice", "", 100),
    (values.nice, "nice", "-50", -50),
    (values.nice, "nice", "abc", 0),
    (values.array, "array", "1-5%2", ArrayAsk(TaskSet(((1, 5, 1),)), 2)),
    (values.array, "array", "", None),
    (values.exclusive, "exclusive", "", Sharing.EXCLUSIVE),
    (values.exclusive, "exclusive", "user", Sharing.USER),
    (values.gres, "gres", "gpu", (GresAsk("gpu", "", 1, Per.NODE),)),
    (values.gres, "gres", "gpu:2", (GresAsk("gpu", "", 2, Per.NODE),)),
    (values.gres, "gres", "gres:gpu:a100:1k", (GresAsk("gpu", "a100", 1024, Per.NODE),)),
    (values.gres, "gres", "gpu:a100", (GresAsk("gpu", "a100", 1, Per.NODE),)),
    (values.gres, "gres", "gpu:0", ()),
    (values.gres, "gres", "none", ()),
    (values.gpus, "gpus", "2", (GresAsk("gpu", "", 2, Per.JOB),)),
    (
        values.gpus,
        "gpus-per-node",
        "a100:1,mi300x:2",
        (GresAsk("gpu", "a100", 1, Per.NODE), GresAsk("gpu", "mi300x", 2, Per.NODE)),
    ),
    (values.gpus, "gpus-per-task", "abc", (GresAsk("gpu", "abc", 1, Per.TASK),)),
    (values.gpus, "gpus", "0", ()),
    (values.signal, "signal", "B:USR1@60", "B:USR1@60"),
    (values.signal, "signal", "RB:SIGUSR2@5", "RB:SIGUSR2@5"),
    (values.signal, "signal", "R:10", "R:10"),
    (values.kill_signal, "kill-command", "", 0),
    (values.kill_signal, "kill-command", "sigUSR1", 10),
    (values.kill_signal, "kill-command", "9", 9),
    (values.mail_types, "mail-type", "BEGIN,time_limit_80", "BEGIN,time_limit_80"),
    (values.distribution, "distribution", "block:cyclic,Pack", "block:cyclic,Pack"),
    (values.distribution, "distribution", "plane=4", "plane=4"),
    (values.switches, "switches", "1@10:00", "1@10:00"),
    (values.hint, "hint", "multithread", "multithread"),
    (values.disk, "tmp", "2G", 2048),
    (values.node_shape, "extra-node-info", "2:*:1", (2, 0, 1)),
    (values.node_shape, "extra-node-info", "2", (2, 0, 0)),
    (values.open_mode, "open-mode", "append", "append"),
    (values.gres_flags, "gres-flags", "enforce-binding", "enforce-binding"),
    (values.yes_or_no, "kill-on-invalid-dep", "Yes", True),
    (values.priority, "priority", "50", 50),
]


@pytest.mark.parametrize(("parse", "option", "text", "value"), GOOD)
def test_value_is_read(parse: object, option: str, text: str, value: object) -> None:
    """Someone gives an option a value that Slurm takes."""
    assert callable(parse)
    assert parse(text, option) == value


INVALID = "Invalid --{} specification"

BAD = [
    (values.positive, "ntasks", "abc", 'Invalid numeric value "abc" for --ntasks.', 1),
    (values.positive, "ntasks", "-1", 'Invalid numeric value "-1" for --ntasks.', 1),
    (values.positive, "ntasks", "1k", 'Invalid numeric value "1k" for --ntasks.', 1),
    (values.positive, "cpus-per-task", "0", 'Invalid numeric value "0" for --cpus-per-task.', 1),
    (values.time_limit, "time", "abc", INVALID, 255),
    (values.time_limit, "time-min", "5m", INVALID, 255),
    (values.memory, "mem", "0.5G", INVALID, 255),
    (values.memory, "mem-per-cpu", "100X", INVALID, 255),
    (values.disk, "tmp", "xx", INVALID, 255),
    (values.node_shape, "extra-node-info", "1:2:3:4", INVALID, 255),
    (
        values.node_shape,
        "extra-node-info",
        "1:a",
        'Invalid numeric value "a" for second arg of -B.',
        1,
    ),
    (values.nodes, "nodes", "abc", '"abc" is not a valid node count', 255),
    (values.nodes, "nodes", "2,4", '"2,4" is not a valid node count', 255),
    (values.nodes, "nodes", "0", '"0" is not a valid node count', 255),
    (
        values.nodes,
        "nodes",
        "2-1",
        "Maximum node count 1 is less than minimum node count 2",
        255,
    ),
    (
        values.nice,
        "nice",
        "99999999999",
        "Invalid --nice value, out of range (+/- 2147483645)",
        255,
    ),
    (
        values.array,
        "array",
        "1-",
        "Invalid job array specification",
        1,
    ),
    (values.hosts, "nodelist", "n[1", "Invalid node name specified", 1),
    (values.exclusive, "exclusive", "mine", INVALID, 255),
    (values.gres, "gres", "nosuch:1", "Invalid generic resource (gres) specification", 1),
    (values.gres, "gres", "gpu:abc:xyz", "Invalid generic resource (gres) specification", 1),
    (values.gres, "gres", "gpu:a:b:1", "Invalid generic resource (gres) specification", 1),
    (values.signal, "signal", "B:15@99999", INVALID, 255),
    (values.signal, "signal", "USR1@x", INVALID, 255),
    (values.signal, "signal", "NOSUCH", INVALID, 255),
    (values.signal, "signal", "X:USR1", INVALID, 255),
    (values.kill_signal, "kill-command", "NOSUCH", "Invalid --kill-command specification", 255),
    (values.kill_signal, "kill-command", "65", "Invalid --kill-command specification", 255),
    (values.mail_types, "mail-type", "nosuch", INVALID, 255),
    (values.distribution, "distribution", "nosuch", INVALID, 255),
    (values.distribution, "distribution", "block,loose", INVALID, 255),
    (values.switches, "switches", "x", 'Invalid numeric value "x" for --switches.', 1),
    (values.hint, "hint", "nosuch", 'unrecognized --hint argument "nosuch", see --hint=help', 1),
    (values.open_mode, "open-mode", "x", INVALID, 255),
    (values.gres_flags, "gres-flags", "nosuch", INVALID, 255),
    (values.yes_or_no, "kill-on-invalid-dep", "maybe", INVALID, 255),
    (values.priority, "priority", "high", INVALID, 255),
    (values.number_text, "mincpus", "many", 'Invalid numeric value "many" for --mincpus.', 1),
]


@pytest.mark.parametrize(("parse", "option", "text", "sentence", "status"), BAD)
def test_bad_value_is_refused_in_slurms_words(
    parse: object, option: str, text: str, sentence: str, status: int
) -> None:
    """Someone mistypes a value; their script looks at what is said and at the exit status."""
    assert callable(parse)
    with pytest.raises(BadOption) as refused:
        parse(text, option)
    assert refused.value.sentence == sentence.format(option)
    assert refused.value.status == status
