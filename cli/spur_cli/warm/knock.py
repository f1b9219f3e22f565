"""The launcher's side: hands a command to a warm worker, or says that it must run cold.

launcher.c does the same without an interpreter; whatever changes here changes there.

It is all that a warm command imports, so it keeps to modules that are built in, and to `_socket`.
"""

from __future__ import annotations

import _signal
import _socket
import posix
import sys

__all__ = ["COLD", "LEAVE", "Door", "door_of", "knock", "words_of_door"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

Door = tuple[bytes, bytes]
"""A directory that only we can enter, and the name of the socket in it."""

COLD = 1
"""Run the command here."""

LEAVE = 2
"""Run it here, and leave a worker behind."""

HINT = "spur_cold"
"""Option -X of an interpreter that launcher.c started since a worker had refused."""

WORDS = {
    "squeue": False,
    "sinfo": False,
    "sacct": False,
    "sbatch": True,
    "scancel": True,
    "scontrol": True,
    "sacctmgr": True,
}
"""Commands that may run warm, and whether they may read from a terminal: then they do not."""

PATIENCE_S = 0.5
"""How long a worker may take to say that it is ready."""

FORM = b"spur-warm-1"
"""First word of a request; one of another form is not answered."""

READY, REFUSED, ENDED, DIED = b"r", b"c", b"e", b"d"
"""What a worker sends, each with a number of four bytes."""

_PASSED_ON = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGALRM")

_CREDENTIALS_SIZE = 12
_PEER_CREDENTIALS = 17
_PATH_ONLY = 0o10000000

# Each steers a process from its very start, or names what only the caller has open.
_NOT_FOR_OTHERS = (
    b"\0LD_",
    b"\0GLIBC_TUNABLES=",
    b"\0MALLOC_",
    b"/proc/",
    b"/dev/fd/",
    b"/dev/tty",
)


def knock(argv: Sequence[str], install: Sequence[str]) -> int:
    """Have a worker run the command and end as it ended, or return how to run it here."""
    name = argv[0].rpartition("/")[2]
    environment = posix.environ
    if name not in WORDS or environment.get(b"SPUR_WARM") == b"0" or HINT in sys._xoptions:
        return COLD
    if posix.getuid() != posix.geteuid() or posix.getgid() != posix.getegid():
        return COLD
    try:
        terminal = posix.isatty(0)
        for fd in (0, 1, 2):
            posix.fstat(fd)
        if WORDS[name] and terminal:
            return COLD
        request = _request(argv, environment)
        if any(word in request for word in _NOT_FOR_OTHERS):
            return COLD
        door = door_of(install)
        if door is None:
            return COLD
        return _enter(door, request)
    except OSError:
        return COLD


def door_of(install: Sequence[str]) -> Door | None:
    """Return where the worker of this user, installation and session is; None for no safe place.

    The directory is made if need be. Raises: OSError when something is not as it should be.
    """
    uid = posix.getuid()
    own = posix.environ.get(b"XDG_RUNTIME_DIR", b"")
    base = own + b"/spur" if _is_private(own, uid) else b"/tmp/spur-%d" % uid
    if not _is_private(base, uid):
        try:
            posix.mkdir(base, 0o700)
        except FileExistsError:
            return None
        if not _is_private(base, uid):
            return None
    rank = b"\n%d %d" % (posix.getpriority(posix.PRIO_PROCESS, 0), posix.sched_getscheduler(0))
    with_all = words_of_door(install) + rank
    with open("/proc/self/cgroup", "rb") as file:
        with_all += file.read()
    # No secret and no promise: a worker that is another one says so itself.
    return base, b"warm-%x" % (int.from_bytes(with_all, "big") % ((1 << 61) - 1))


def words_of_door(install: Sequence[str]) -> bytes:
    """Return what the name of a socket follows from, but for what each process finds out."""
    return "\n".join([*install, sys.executable, sys.version]).encode("utf-8", "surrogateescape")


def _is_private(path: bytes, uid: int) -> bool:
    """Whether a path is a directory of ours, no link, that nobody else may enter."""
    if not path.startswith(b"/"):
        return False
    try:
        found = posix.lstat(path)
    except OSError:
        return False
    return found.st_mode & 0o170077 == 0o040000 and found.st_uid == uid


def _request(argv: Sequence[str], environment: dict[bytes, bytes]) -> bytes:
    coding = sys.getfilesystemencoding()
    fields = [FORM, coding.encode()]
    for stream in (sys.stdin, sys.stdout):
        fields += [stream.encoding.encode(), (stream.errors or "strict").encode()]
    fields.append(b"%d" % len(argv))
    fields += [word.encode(coding, "surrogateescape") for word in argv]
    fields += [key + b"=" + value for key, value in environment.items()]
    return b"\0".join(fields)


def _enter(door: Door, request: bytes) -> int:
    """Hand the command over, and end as it ends. Raises: OSError before it began."""
    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    line.settimeout(PATIENCE_S)
    try:
        line.connect(door[0] + b"/" + door[1])
    except (FileNotFoundError, ConnectionRefusedError):
        return LEAVE
    seen = line.getsockopt(_socket.SOL_SOCKET, _PEER_CREDENTIALS, _CREDENTIALS_SIZE)
    if int.from_bytes(seen[4:8], sys.byteorder) != posix.getuid():
        return COLD
    word, child = _hear(line)
    if word != READY:
        return COLD if word == REFUSED else LEAVE
    here = posix.open(".", _PATH_ONLY | posix.O_CLOEXEC)
    files = b"".join(fd.to_bytes(4, sys.byteorder) for fd in (here, 0, 1, 2))
    size = len(request).to_bytes(4, "big")
    line.settimeout(None)
    signals = _Signals(child)
    try:
        line.sendmsg([size], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
        line.sendall(request)
    except OSError:  # it has changed its mind; its word lies there
        pass
    word, number = _outcome(line)
    if word == ENDED:
        posix._exit(number)
    signals.restore()
    if word == REFUSED:
        return COLD
    _die(number if word == DIED else signals.last or _signal.SIGKILL)
    return COLD


def _outcome(line: _socket.socket) -> tuple[bytes, int]:
    """Return the last word; none when there is no saying what became of the command."""
    for _ in range(2):
        try:
            return _hear(line)
        except OSError:  # told once when the other side closed with something unread
            continue
    return b"", 0


def _hear(line: _socket.socket) -> tuple[bytes, int]:
    """Return a word and its number; no word when the other side is gone."""
    data = b""
    while len(data) < 5:
        more = line.recv(5 - len(data))
        if not more:
            return b"", 0
        data += more
    return data[:1], int.from_bytes(data[1:], "big")


class _Signals:
    """Passes on to the child what is sent to us, and stops with it."""

    def __init__(self, child: int) -> None:
        self.last = 0
        self._child = child
        self._before = {}
        for name in (*_PASSED_ON, "SIGTSTP"):
            number = getattr(_signal, name)
            before = _signal.getsignal(number)
            if before != _signal.SIG_IGN:
                self._before[number] = before
                _signal.signal(number, self._stop if name == "SIGTSTP" else self._pass_on)

    def restore(self) -> None:
        """Take signals as before."""
        for number, before in self._before.items():
            _signal.signal(number, before)

    def _pass_on(self, number: int, frame: object) -> None:
        self.last = number
        self._send(number)

    def _stop(self, number: int, frame: object) -> None:
        self._send(_signal.SIGSTOP)
        posix.kill(posix.getpid(), _signal.SIGSTOP)
        self._send(_signal.SIGCONT)

    def _send(self, number: int) -> None:
        try:
            posix.kill(self._child, number)
        except ProcessLookupError:
            return


def _die(number: int) -> None:
    """Die by a signal, as the command did; it has left its core where it wanted one."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (_signal.SIGKILL, _signal.SIGSTOP):
        _signal.signal(number, _signal.SIG_DFL)
    posix.kill(posix.getpid(), number)
    posix._exit(128 + number)
