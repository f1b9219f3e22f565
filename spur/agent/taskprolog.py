"""A program that runs before a task, and changes what the task finds.

Each line that it writes is an order: `export NAME=value`, `unset NAME`, `print text` for the task's
own output. Others are passed over.

Source: srun(1) --task-prolog; slurm.conf(5) TaskProlog; transcripts of Slurm 22.05.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal

__all__ = ["obey", "run_prolog"]

WRITTEN_BYTES_MAX = 1 << 20
"""What is written beyond is not read."""


def run_prolog(path: bytes, environment: dict[bytes, bytes], words: str) -> int:
    """Run it with the rights of this process, and do what it orders; wait until it has ended.

    Return 0, or with what status the task is to end instead; that is said on stderr, where
    sentences begin with `words`. Raises: OSError.
    """
    why = _unfit(path)
    if why:
        _say(words, f"run_command: user task_prolog {why}")
        reason = "Run command failed - configuration error"
        _say(words, f"user task_prolog did not exit normally. reason: {reason}")
        _say(words, "--task-prolog failed status=1")
        return 1
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setpgid(0, 0)
            os.dup2(writer, 1)
            os.closerange(3, max(reader, writer) + 1)
            os.close(0)
            os.execve(path, (path,), environment)
        except OSError as error:
            _say(words, f"execve({os.fsdecode(path)}): {os.strerror(error.errno or 0)}")
        finally:
            os._exit(127)
    os.close(writer)
    written = bytearray()
    while len(written) < WRITTEN_BYTES_MAX and (data := os.read(reader, 65536)):
        written += data
    os.close(reader)
    _, ended = os.waitpid(pid, 0)
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    printed = obey(bytes(written), environment)
    while printed:
        printed = printed[os.write(1, printed) :]
    status = os.WEXITSTATUS(ended) if os.WIFEXITED(ended) else 1
    if not os.WIFEXITED(ended):
        _say(words, "user task_prolog did not exit normally. reason: ")
    if status:
        _say(words, f"--task-prolog failed status={status}")
    return status


def _unfit(path: bytes) -> str:
    """Return why a path is that of no program; empty when it is."""
    name = os.fsdecode(path)
    if not path.startswith(b"/"):
        return f"is not fully qualified pathname ({name})"
    try:
        if os.access(path, os.R_OK | os.X_OK):
            return ""
        os.stat(path)
        number = errno.EACCES
    except OSError as error:
        number = error.errno or 0
    return f"can not be executed ({name}) {os.strerror(number)}"


def _say(words: str, sentence: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"{words}{sentence}\n".encode("utf-8", "surrogateescape"))


def obey(written: bytes, environment: dict[bytes, bytes]) -> bytes:
    """Change the environment as is ordered, and return what is to be printed."""
    printed = b""
    for line in written.split(b"\n"):
        word, _, rest = line.strip(b" \t").partition(b" ")
        rest = rest.lstrip(b" \t")
        name, equals, value = rest.partition(b"=")
        if word == b"print":
            printed += rest + b"\n"
        elif word == b"export" and equals and name:
            environment[name] = value
        elif word == b"unset" and rest:
            environment.pop(rest, None)
    return printed
