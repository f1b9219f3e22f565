"""The command spurd: the agent of one directory.

    spurd run --dir DIR

It serves the nodes that its settings name, and passes on the commands of this host's users; with
no nodes it only does the latter. Exit status: 0 after SIGTERM, 2 for a wrong command line, 70 when
it contradicts itself, 78 when it refuses to start. What runs on its nodes goes on without it.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from spur.agent.agent import Agent
from spur.agent.relay import Relay
from spur.agent.renewal import renew_certificate
from spur.agent.spool import is_full
from spur.agent.stays import Stays
from spur.agent.streams import Streams
from spur.agent.whereabouts import Whereabouts
from spur.client.address import parse_tcp_address
from spur.client.client import Client
from spur.client.tls import credentials_in
from spur.server.agentsettings import TLS_DIRECTORY, Settings, load_settings
from spur.server.notify import Notifier
from spur.server.once import Once
from spur.server.process import run_daemon, run_until_stopped, tune_interpreter
from spur.server.renewal import keep_renewed
from spur.server.rpc import RpcServer
from spur.values.errors import OperatorFault

__all__ = ["main"]

EXIT_OURS = 70
"""EX_SOFTWARE of sysexits(3)."""
EXIT_REFUSED = 78
"""EX_CONFIG."""

ROOM_AGAIN_S = 1.0
"""Between two looks whether a full disk has room again."""

LOG = logging.getLogger("spurd")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="spurd", description="Spur's agent.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="run the agent of a directory")
    run.add_argument("--dir", type=Path, required=True, help="the agent's directory")
    run.add_argument("--verbose", action="store_true", help="log details")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; return the exit status."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.DEBUG if options.verbose else logging.INFO,
        format="%(asctime)s %(name)s: %(message)s",
    )
    try:
        directory = options.dir.absolute()
        settings = load_settings(directory)
        tune_interpreter()
        run_daemon(_run(directory, settings))
    except OperatorFault as fault:
        LOG.error("%s", fault)
        return EXIT_REFUSED
    except Exception:
        LOG.exception("the agent stops because of a fault of ours; what runs goes on")
        return EXIT_OURS
    return 0


async def _run(directory: Path, settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT."""
    notifier = Notifier(os.environ)
    tls = credentials_in(directory / TLS_DIRECTORY)
    own = tls if tls.host.exists() else None
    whereabouts = Whereabouts(directory, settings.controllers)
    async with Client(
        whereabouts.addresses,
        tls=own,
        cluster_id=bytes.fromhex(settings.cluster_id),
    ) as client:
        cluster_id = bytes.fromhex(settings.cluster_id)
        relay = Relay(client, whereabouts.take)
        agent = await _agent(directory, settings, client) if settings.nodes else None
        streams = Streams(cluster_id=cluster_id, tls=own, agent=agent)
        stays = Stays(relay.cancel)
        server = RpcServer(
            cluster_id=cluster_id,
            replica=0,
            handler=relay.handle,
            position=relay.position,
            report=LOG.info,
            opening=lambda *first: stays.opening(*first) or streams.opening(*first),
        )
        if settings.address:
            await server.start_tls(*parse_tcp_address(settings.address), tls)
        failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

        async def serve() -> None:
            async with asyncio.TaskGroup() as group:
                if agent is not None:
                    group.create_task(agent.run())
                if own is not None:
                    group.create_task(keep_renewed(own, renew, LOG))
                notifier.tell("STATUS=a controller is looked for")
                await relay.find()
                await server.start_unix(str(directory / settings.socket))
                LOG.info("commands are taken on %s", directory / settings.socket)
                notifier.tell("STATUS=commands are taken")
                group.create_task(relay.keep_up())

        def show_certificate() -> None:
            client.show_certificate()
            server.show_certificates()
            streams.show_certificate()

        renew = partial(renew_certificate, tls, whereabouts, show_certificate)
        serving = asyncio.get_running_loop().create_task(serve())
        serving.add_done_callback(lambda done: _note(done, failed))
        notifier.tell("READY=1")
        fault = await run_until_stopped(failed)
        notifier.tell("STOPPING=1")
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        await stays.close()
        await server.close()
        await relay.close()
        await streams.close()
        if fault is not None:
            raise fault


async def _agent(directory: Path, settings: Settings, client: Client) -> Agent:
    """Return the agent of this host's nodes, once its disk takes what it has to keep.

    Raises: OperatorFault, OSError.
    """
    once = Once(LOG.warning)
    while True:
        try:
            return Agent(directory, settings, client)
        except OSError as error:
            if not is_full(error):
                raise
            once.report("disk", f"{directory}: {error.strerror}: it begins when there is room")
            await asyncio.sleep(ROOM_AGAIN_S)


def _note(done: asyncio.Task[None], failed: asyncio.Future[BaseException]) -> None:
    """Let a fault in what serves end the process."""
    if not done.cancelled() and (error := done.exception()) is not None and not failed.done():
        failed.set_result(_only(error))


def _only(error: BaseException) -> BaseException:
    """Return the one fault in a group of one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


if __name__ == "__main__":
    sys.exit(main())
