"""Renewing a host's certificate while its daemon runs.

Two thirds into the life of its certificate a daemon gets the next one, writes it, and shows it on
every connection made from then on; what is open goes on. The last third is the time that whatever
is in the way may take to be mended.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from spur.client.tls import TlsFiles, validity_of
from spur.values.errors import OperatorFault, SpurError

__all__ = ["keep_renewed", "renewal_moment"]

LOOK_S = 3600.0
"""The longest sleep between two looks at the clock, which may be set meanwhile."""

RETRIES = 100
"""Tries that fit into the last third."""

RETRY_S_MAX = 600.0
RETRY_S_MIN = 0.2


def renewal_moment(certificate: bytes) -> float:
    """Return when the certificate in these PEM files is to be renewed, in seconds since 1970.

    Raises: ValueError when there is none.
    """
    return _due_s(*validity_of(certificate.decode("ascii")))


def _due_s(first_s: float, last_s: float) -> float:
    return last_s - (last_s - first_s) / 3


async def keep_renewed(
    files: TlsFiles, renew: Callable[[], Awaitable[None]], log: logging.Logger
) -> None:
    """Call `renew` whenever the host's certificate has come so far, until cancelled.

    `renew` writes the next one and raises a SpurError when it can't; it is then tried again.
    """
    said = ""
    while True:
        first_s, last_s = _read(files)
        due_s = _due_s(first_s, last_s)
        wait_s = due_s - time.time()
        if wait_s > 0:
            await asyncio.sleep(min(wait_s, LOOK_S))
            continue
        try:
            await renew()
        except SpurError as fault:
            ends = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(last_s))
            why = f"the certificate ends at {ends} UTC and could not be renewed: {fault}"
            if why != said:
                log.warning("%s; it is tried again", why)
                said = why
            third_s = (last_s - first_s) / 3
            await asyncio.sleep(max(RETRY_S_MIN, min(RETRY_S_MAX, third_s / RETRIES)))
        else:
            said = ""
            ends = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(_read(files)[1]))
            log.info("the certificate was renewed; it holds until %s UTC", ends)


def _read(files: TlsFiles) -> tuple[float, float]:
    """Return from when to when the certificate on disk holds. Raises: OperatorFault."""
    try:
        return validity_of(files.host.read_text("ascii"))
    except (OSError, ValueError) as error:
        raise OperatorFault(f"{files.host} cannot be used for TLS: {error}") from error
