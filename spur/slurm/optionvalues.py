"""Values of options: each function reads the text behind one option, or says what is wrong.

`BadOption` carries Slurm's sentence without the program's name, and the exit status.

Source: sbatch(1); transcripts of Slurm 22.05.
"""

from __future__ import annotations

from spur.slurm.mailtypes import MAIL_TYPES
from spur.slurm.sizes import COUNT_MAX, parse_count, parse_memory
from spur.slurm.timespec import parse_time_limit
from spur.values.arrays import ArrayAsk, parse_array
from spur.values.hostlist import parse_hostlist
from spur.values.ids import PartitionName
from spur.values.jobspec import Sharing
from spur.values.tres import GresAsk, Per

__all__ = [
    "MEMORY_ALL_MIB",
    "NICE_DEFAULT",
    "NICE_MAX",
    "NO_NAME",
    "SIGNALS",
    "BadOption",
    "array",
    "count",
    "disk",
    "distribution",
    "exclusive",
    "gpus",
    "gres",
    "gres_flags",
    "hint",
    "hosts",
    "kill_signal",
    "limits",
    "mail_types",
    "memory",
    "name",
    "nice",
    "node_shape",
    "nodes",
    "number_text",
    "open_mode",
    "oversubscribe",
    "partitions",
    "positive",
    "priority",
    "requeue",
    "seconds_or_one",
    "signal",
    "switches",
    "text",
    "time_limit",
    "yes_or_no",
]

SYNTAX_STATUS = 255
"""How sbatch exits for a value that is none: it returns -1."""

NICE_DEFAULT = 100
"""What --nice alone adds."""

NICE_MAX = 2_147_483_645

MEMORY_ALL_MIB = -1
"""All the memory that a node has."""

PRIORITY_MAX = (1 << 32) - 2
"""Source: sbatch(1) --priority."""

NO_NAME = "(null)"
"""What Slurm prints for a name that was given and is empty; nothing is called so."""

ARRAY_INDEX_MAX = 4_000_001
"""The highest task index that any site may allow; the controller has its own limit."""


class BadOption(Exception):
    """A value that is none: Slurm's sentences, and the exit status."""

    def __init__(
        self,
        sentence: str,
        status: int = SYNTAX_STATUS,
        then: str = "",
        *,
        is_late: bool = False,
    ) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        """One for each of its lines."""
        self.status = status
        self.then = then
        """What is said on another line; empty for nothing."""
        self.is_late = is_late
        """Whether Slurm's controller finds it, and its command says that nothing was submitted."""

    def __reduce__(self) -> tuple[object, ...]:
        return (BadOption, (self.sentence, self.status, self.then), {"is_late": self.is_late})

    @property
    def sentences(self) -> tuple[str, ...]:
        """All that is said, a line each."""
        first = tuple(self.sentence.split("\n"))
        return (*first, self.then) if self.then else first


def _invalid(option: str) -> BadOption:
    return BadOption(f"Invalid --{option} specification")


def text(value: str, option: str) -> str:
    """Return the text as it is."""
    return value


def positive(value: str, option: str) -> int:
    """Return a number from 1 on."""
    count = _number(value)
    if count is None or not 1 <= count <= COUNT_MAX:
        raise BadOption(f'Invalid numeric value "{value}" for --{option}.', 1)
    return count


def count(value: str, option: str) -> int:
    """Return a number from 0 on."""
    return 0 if value.strip("0") == "" and value else positive(value, option)


def seconds_or_one(value: str, option: str) -> int:
    """Return seconds; an empty text is one."""
    return count(value, option) if value else 1


def _number(value: str) -> int | None:
    """Return a number that may have blanks and a plus before it; None for what is none."""
    digits = value.lstrip().removeprefix("+")
    return int(digits[:12]) if digits.isascii() and digits.isdigit() else None


def time_limit(value: str, option: str) -> int:
    """Return seconds."""
    try:
        return parse_time_limit(value)
    except ValueError as error:
        raise _invalid(option) from error


def memory(value: str, option: str) -> int:
    """Return MiB; 0 means all that a node has."""
    try:
        return parse_memory(value) or MEMORY_ALL_MIB
    except ValueError as error:
        raise _invalid(option) from error


def disk(value: str, option: str) -> int:
    """Return MiB."""
    try:
        return parse_memory(value)
    except ValueError as error:
        raise _invalid(option) from error


def node_shape(value: str, option: str) -> tuple[int, int, int]:
    """Return sockets, cores and threads of a node, as in 2:4:2; 0 for what is not said."""
    parts = value.split(":")
    if len(parts) > 3:
        raise _invalid(option)
    counts = [
        0 if part in ("", "*") else _count_of(part, place)
        for part, place in zip(parts, ("first", "second", "third"), strict=False)
    ]
    sockets, cores, threads = (*counts, 0, 0)[:3]
    return sockets, cores, threads


def _count_of(part: str, place: str) -> int:
    try:
        return parse_count(part)
    except ValueError as error:
        is_large = part.isascii() and part.isdigit()
        sentence = (
            f"Numeric argument ({part}) to big for {place} arg of -B."
            if is_large
            else f'Invalid numeric value "{part}" for {place} arg of -B.'
        )
        raise BadOption(sentence, 1) from error


def nodes(value: str, option: str) -> tuple[int, int]:
    """Return the fewest and the most nodes: 4 is 4-4."""
    fewest_text, dash, most_text = value.partition("-")
    if not fewest_text:
        raise BadOption(f'"{value}" is not a valid node count')
    fewest = _node_count(fewest_text)
    most = (_node_count(most_text) if most_text else -1) if dash else fewest
    if most < fewest:
        raise BadOption(f"Maximum node count {most} is less than minimum node count {fewest}")
    return fewest, most


def _node_count(text: str) -> int:
    try:
        count = parse_count(text)
    except ValueError:
        count = 0
    if count < 1:
        raise BadOption(f'"{text}" is not a valid node count')
    return count


def partitions(value: str, option: str) -> tuple[PartitionName, ...]:
    """Return names parted by commas, each once; a name that is none when there are none."""
    return tuple(dict.fromkeys(PartitionName(name) for name in value.split(",") if name)) or (
        PartitionName(NO_NAME),
    )


def name(value: str, option: str) -> str:
    """Return the text; a name that is none when it is empty: that does not ask for the default."""
    return value or NO_NAME


def nice(value: str, option: str) -> int:
    """Return what is taken off the priority; an empty value is the default, words are 0."""
    if not value:
        return NICE_DEFAULT
    sign, digits = (-1, value[1:]) if value.startswith("-") else (1, value.removeprefix("+"))
    digits = digits[: len(digits) - len(digits.lstrip("0123456789"))]
    amount = sign * int(digits[:18] or 0)
    if abs(amount) > NICE_MAX:
        raise BadOption(f"Invalid --nice value, out of range (+/- {NICE_MAX})")
    return amount


def array(value: str, option: str) -> ArrayAsk | None:
    """Return the tasks; None for an empty text, which asks for no array."""
    if not value:
        return None
    try:
        return parse_array(value, index_max=ARRAY_INDEX_MAX)
    except ValueError as error:
        raise BadOption("Invalid job array specification", 1, is_late=True) from error


def hosts(value: str, option: str) -> str:
    """Return the host list, checked."""
    try:
        if "/" not in value:  # else it is a file that has the list
            parse_hostlist(value)
    except ValueError as error:
        raise BadOption("Invalid node name specified", 1, is_late=True) from error
    return value


def exclusive(value: str, option: str) -> Sharing:
    """Return with whom the job shares its nodes."""
    if value in ("", "exclusive"):
        return Sharing.EXCLUSIVE
    if value == "user":
        return Sharing.USER
    if value == "mcs":
        return Sharing.LABEL
    raise _invalid(option)


def oversubscribe(value: str, option: str) -> Sharing:
    """Return that the job shares its nodes with any other that does."""
    return Sharing.OVERSUBSCRIBE


def requeue(value: str, option: str) -> bool:
    """Return whether a lost node puts the job back into the queue."""
    return option == "requeue"


def priority(value: str, option: str) -> int:
    """Return a fixed rank, which takes an operator."""
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        raise _invalid(option)
    if value.startswith("-"):
        raise BadOption("Priority must be >= 0")
    if int(value[:12]) >= PRIORITY_MAX:
        raise BadOption(f"Priority must be < {PRIORITY_MAX}")
    return int(value)


def gres(value: str, option: str) -> tuple[GresAsk, ...]:
    """Return what is asked of each node: gpu, gpu:2, gpu:mi300x:2, parted by commas."""
    if value.lower() in ("none", "help"):
        return ()
    if not value.strip(","):
        raise _no_resource()
    return tuple(
        ask for part in value.split(",") if part for ask in _gres(part.removeprefix("gres:"))
    )


def _gres(part: str) -> tuple[GresAsk, ...]:
    """Return one ask; none when its count is 0."""
    name, kind, count = _named(part)
    if name != "gpu":
        raise BadOption("Invalid generic resource (gres) specification", 1)
    return (GresAsk(name, kind, count, Per.NODE),) if count else ()


def _no_resource() -> BadOption:
    return BadOption("Invalid Trackable RESource (TRES) specification", 1, is_late=True)


def _named(part: str) -> tuple[str, str, int]:
    """Cut name[:kind][:count]."""
    words = part.replace("=", ":").split(":")
    try:
        count = parse_count(words[-1]) if len(words) > 1 else 1
    except ValueError:
        if len(words) > 2 or not words[-1]:
            sentence = "Invalid generic resource (gres) specification"
            raise BadOption(sentence, 1) from None
        if words[1][0].isdigit():
            raise _no_resource() from None
        return words[0], words[1], 1
    if len(words) > 3:
        raise BadOption("Invalid generic resource (gres) specification", 1)
    return words[0], words[1] if len(words) == 3 else "", count


_PER = {
    "gpus": Per.JOB,
    "gpus-per-node": Per.NODE,
    "gpus-per-socket": Per.SOCKET,
    "gpus-per-task": Per.TASK,
}


def gpus(value: str, option: str) -> tuple[GresAsk, ...]:
    """Return what --gpus and its kin ask: 2, mi300x, mi300x:2, parted by commas."""
    asks: list[GresAsk] = []
    for part in value.split(","):
        if part:
            _, kind, count = _named(f"gpu:{part}")
            asks += [GresAsk("gpu", kind, count, _PER[option])] if count else []
    return tuple(asks)


# -- values that are kept as text, once they are known to be good


def number_text(value: str, option: str) -> str:
    """Return a number from 1 on, as it was typed."""
    positive(value, option)
    return value


def switches(value: str, option: str) -> str:
    """Return COUNT[@TIME], as it was typed."""
    count, at, wait = value.partition("@")
    positive(count, option)
    if at:
        time_limit(wait, option)
    return value


_LIMITS = frozenset(
    (
        "ALL",
        "AS",
        "CORE",
        "CPU",
        "DATA",
        "FSIZE",
        "MEMLOCK",
        "NOFILE",
        "NONE",
        "NPROC",
        "RSS",
        "STACK",
    )
)
"""Source: sbatch(1) --propagate."""


def limits(value: str, option: str) -> str:
    """Return which limits of the shell go with the job."""
    for word in value.split(",") if value else ():
        if word.removeprefix("RLIMIT_") not in _LIMITS:
            name = word.split(maxsplit=1)[0] if word.split() else word
            raise BadOption(f"Bad rlimit name: {name}", 1, f"--{option}={value} is not valid.")
    return value


def yes_or_no(value: str, option: str) -> bool:
    """Return whether it is yes."""
    if value.lower() not in ("yes", "no"):
        raise _invalid(option)
    return value.lower() == "yes"


def open_mode(value: str, option: str) -> str:
    """Return how output files are opened: append or truncate; the first letter says it."""
    if value[:1].lower() not in ("a", "t"):
        raise _invalid(option)
    return value


def mail_types(value: str, option: str) -> str:
    """Return the events that a mail is asked for."""
    if not MAIL_TYPES.issuperset(value.upper().split(",")):
        raise _invalid(option)
    return value


def gres_flags(value: str, option: str) -> str:
    """Return how GPUs and cores are matched."""
    known = (
        "disable-binding",
        "enforce-binding",
        "one-task-per-sharing",
        "multiple-tasks-per-sharing",
    )
    if not set(value.lower().split(",")) <= {*known, "allow-task-sharing"}:
        raise _invalid(option)
    return value


def hint(value: str, option: str) -> str:
    """Return what the job says of its way to compute."""
    value = value.rstrip(",")
    if value not in ("compute_bound", "memory_bound", "multithread", "nomultithread"):
        raise BadOption(f'unrecognized --hint argument "{value}", see --hint=help', 1)
    return value


def distribution(value: str, option: str) -> str:
    """Return how tasks are dealt out: method[:method[:method]][,Pack|NoPack]."""
    methods, comma, packing = value.partition(",")
    first, *others = methods.split(":")
    if first.startswith("plane") and not first[6:].strip("0").isdigit():
        raise BadOption(
            "Invalid plane size or size not specified", then=f"Invalid --{option} specification"
        )
    good = first in ("*", "block", "cyclic", "arbitrary") or (
        first.startswith("plane=") and first[6:].isdigit()
    )
    rest_good = len(others) <= 2 and all(
        word in ("*", "block", "cyclic", "fcyclic") for word in others
    )
    if not (good and rest_good) or (comma and packing.lower() not in ("pack", "nopack")):
        raise _invalid(option)
    return value


SIGNALS = {
    "HUP": 1,
    "INT": 2,
    "QUIT": 3,
    "ABRT": 6,
    "KILL": 9,
    "ALRM": 14,
    "TERM": 15,
    "USR1": 10,
    "USR2": 12,
    "URG": 23,
    "CONT": 18,
    "STOP": 19,
    "TSTP": 20,
    "TTIN": 21,
    "TTOU": 22,
    "XCPU": 24,
    "PIPE": 13,
}
"""Signals that have names on command lines, with Linux's numbers."""

SIGNAL_AHEAD_S_MAX = 65_535


def signal(value: str, option: str) -> str:
    """Return [R|B|RB:]SIGNAL[@SECONDS], as it was typed."""
    flags, colon, rest = value.rpartition(":")
    name, at, ahead = rest.partition("@")
    name = name.upper().removeprefix("SIG")
    known = name in SIGNALS or (name.isascii() and name.isdigit() and 1 <= int(name[:4]) <= 64)
    soon = not at or (ahead.isascii() and ahead.isdigit() and int(ahead[:9]) <= SIGNAL_AHEAD_S_MAX)
    if not known or not soon or (colon and (not flags or set(flags.upper()) - {"R", "B"})):
        raise _invalid(option)
    return value


def kill_signal(value: str, option: str) -> int:
    """Return a signal's number; 0 for the usual one, when none is named."""
    name = value.upper().removeprefix("SIG")
    if not name:
        return 0
    number = int(name[:4]) if name.isascii() and name.isdigit() else SIGNALS.get(name, 0)
    if not 1 <= number <= 64:
        raise _invalid(option)
    return number
