"""A program that runs before a task, and changes what the task finds.

Each line that it writes is an order: `export NAME=value`, `unset NAME`, `print text` for the task's
own output. Others are passed over, and so is how it ends.

Source: srun(1) --task-prolog; slurm.conf(5) TaskProlog.
"""

from __future__ import annotations

import contextlib
import os
import signal

__all__ = ["obey", "run_prolog"]

WRITTEN_BYTES_MAX = 1 << 20
"""What is written beyond is not read."""


def run_prolog(path: bytes, environment: dict[bytes, bytes], words: str) -> None:
    """Run it with the rights of this process, and do what it orders; wait until it has ended.

    `words` begin the sentence on stderr when it can't be run. Raises: OSError.
    """
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
            name, reason = os.fsdecode(path), os.strerror(error.errno or 0)
            with contextlib.suppress(OSError):
                os.write(2, os.fsencode(f"{words}execve({name}): {reason}\n"))
        finally:
            os._exit(127)
    os.close(writer)
    written = bytearray()
    while len(written) < WRITTEN_BYTES_MAX and (data := os.read(reader, 65536)):
        written += data
    os.close(reader)
    os.waitpid(pid, 0)
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    printed = obey(bytes(written), environment)
    while printed:
        printed = printed[os.write(1, printed) :]


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
