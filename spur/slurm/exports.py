"""What of the submitter's environment goes with a job.

    ALL, or nothing said     everything
    ALL,B=two                everything, and B
    A,X=9                    A as it is, X, and what begins with SLURM_
    NONE                     what begins with SLURM_
    NIL                      nothing

Source: sbatch(1) --export.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["encode_environment", "exported"]


def exported(environment: Mapping[bytes, bytes], export: bytes | None) -> dict[bytes, bytes]:
    """Return the variables that the job is given; `export` is None when the option is not there."""
    words = [] if export is None else _words(export)
    if export is None or b"ALL" in words:
        found = dict(environment)
    elif words == [b"NIL"]:
        found = {}
    else:
        found = {n: v for n, v in environment.items() if n.startswith(b"SLURM_")}
    if words in ([b"NONE"], [b"NIL"]):
        return found
    for word in words:
        name, equals, value = word.partition(b"=")
        if equals:
            found[name] = value
        elif name != b"ALL" and name in environment:
            found[name] = environment[name]
    return found


def _words(export: bytes) -> list[bytes]:
    """Cut at the commas outside of quotes, and drop the quotes."""
    words: list[bytes] = [b""]
    quote = 0
    for letter in export:
        if quote:
            if letter == quote:
                quote = 0
            else:
                words[-1] += bytes((letter,))
        elif letter in b"\"'":
            quote = letter
        elif letter == 0x2C:
            words.append(b"")
        else:
            words[-1] += bytes((letter,))
    return [word for word in words if word]


def encode_environment(environment: Mapping[bytes, bytes]) -> bytes:
    """Return the content of the attachment "environment": NAME=value, each ended by a NUL."""
    return b"".join(b"%s=%s\0" % pair for pair in environment.items())
