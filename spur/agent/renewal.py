"""An agent's next certificate: asked of the leader's desk, with the present one, for a new key.

Keys and certificates are handled by a library of some megabytes, which is loaded when it is
needed: once in many months.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from spur.agent.whereabouts import Whereabouts
from spur.client.desk import ask_desk
from spur.client.tls import TlsFiles, client_context
from spur.values.errors import OperatorFault, Rejection
from spur.wire.desk import AskToRenew

__all__ = ["renew_certificate"]

WAIT_S = 10.0
"""How long a leader is looked for at a time."""


async def renew_certificate(
    files: TlsFiles, whereabouts: Whereabouts, show: Callable[[], None]
) -> None:
    """Get the next certificate, write it, and have it shown.

    Raises: OperatorFault when the cluster gives none; NoDesk when it could not be asked.
    """
    from spur.server.credentials import (
        Credentials,
        key_pem,
        make_key,
        make_signing_request,
        write_credentials,
    )

    known = whereabouts.addresses
    addresses = [address for address in known if not address.startswith("unix:")]
    if not addresses:
        raise OperatorFault("no controller's host:port is known to this agent")
    key = make_key()
    answer = await ask_desk(
        addresses,
        lambda: client_context(files),
        AskToRenew(make_signing_request(key, "")),
        wait_s=WAIT_S,
    )
    if isinstance(answer, Rejection):
        raise OperatorFault(answer.text)
    credentials = Credentials(certificate=answer.certificate, key=key_pem(key))
    try:
        authority = files.authority.read_bytes()
        await asyncio.to_thread(write_credentials, files.host.parent, authority, credentials)
    except OSError as error:
        raise OperatorFault(f"{files.host} can't be written: {error}") from error
    show()
