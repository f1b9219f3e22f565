"""spurctld's front process: replica, front, peers and RPC on one loop.

Everything that may block has its own thread (a lane of the disk) or its own process (the
snapshots). What the front decides is in `front.py`; what is here only carries it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import secrets
import time
from datetime import UTC, datetime
from pathlib import Path

from spur.client.address import parse_tcp_address
from spur.client.tls import TlsFiles, credentials_in
from spur.consensus.disk import Disk, OsDisk
from spur.consensus.driver import Driver
from spur.consensus.exchange import AuthorityAsk, AuthorityTell
from spur.consensus.opening import ReplicaOptions, open_replica
from spur.consensus.replica import Replica
from spur.controller.beside import Beside
from spur.controller.birth import AUTHORITY_DIRECTORY, TLS_DIRECTORY
from spur.controller.clocks import MachineClocks
from spur.controller.company import Company
from spur.controller.desk import HostDesk
from spur.controller.front import Front
from spur.controller.loglevel import LogLevel
from spur.controller.net import PeerNet
from spur.controller.renewal import OwnCertificate
from spur.controller.settings import Settings
from spur.controller.snapshots import SnapshotProcess
from spur.controller.transport import Traffic, make_net
from spur.controller.waiting import Respond
from spur.events.envelope import Actor
from spur.projections.state import new_state
from spur.server.credentials import require_credentials
from spur.server.notify import Notifier
from spur.server.process import freeze_garbage, run_until_stopped
from spur.server.rpc import RpcServer
from spur.wire.calls import Call
from spur.wire.hello import HostName

__all__ = ["Controller"]

LOG = logging.getLogger("spurctld")

DISK_CHECK_TICKS = 33
"""Ticks between two looks at the free space, about a second."""

SYNC_TICKS = 165
"""Ticks after which the ledger is synced at the latest, about five seconds."""

FREEZE_TICKS = 20_000
"""Ticks between two collections of the young generations, about ten minutes.
Source: LOG-CONTRACT 8.2."""

BREATH_S = 0.002

MIB = 1 << 20


class Controller:
    """One controller replica, from its start to its end."""

    def __init__(self, directory: Path, settings: Settings) -> None:
        self._directory = directory
        self._settings = settings
        self._disk: Disk = OsDisk(str(directory))
        self._loop = asyncio.get_running_loop()
        self._failed: asyncio.Future[BaseException] = self._loop.create_future()
        self._ticks = 0
        self._snapshot_is_due = False
        self._role = (0, 0)
        self._notifier = Notifier(os.environ)
        self._replica: Replica
        self._front: Front
        self._driver: Driver
        self._snapshots: SnapshotProcess

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT.

        Raises: OperatorFault when the directory or an address cannot be used, or the disk fails;
        InvariantBroken when the log contradicts itself.
        """
        lock = self._disk.lock()
        try:
            self._open()
            await self._serve()
        finally:
            lock.release()

    def _open(self) -> None:
        replica = self._replica = open_replica(
            self._disk,
            me=self._settings.node_id,
            rng=random.SystemRandom(),
            clocks=_clocks(self._settings),
            options=ReplicaOptions(breathe=_breathe),
        )
        genesis = replica.storage.genesis
        state = new_state(
            genesis.encoded, cluster_id=genesis.cluster_id, incarnation=genesis.incarnation
        )
        self._beside = Beside(replica, self._wake, self._fail)
        self._company = Company(self._directory, replica, self._fail)
        self._log_level = LogLevel()
        self._front = Front(
            state,
            replica,
            noise=secrets.token_bytes,
            address_of=self._company.address_of,
            services=self._beside,
        )
        self._beside.attach(self._front)
        replica.attach(self._front)
        self._say_notes()
        freeze_garbage()
        self._look_at_disk()

    async def _serve(self) -> None:
        settings, replica = self._settings, self._replica
        tls = credentials_in(self._directory / TLS_DIRECTORY)
        name = HostName(
            cluster_id=replica.identity.cluster_id, role="controller", id=settings.node_id
        )
        require_credentials(tls, name, datetime.fromtimestamp(time.time(), UTC))
        certificate = OwnCertificate(
            self._directory, name, tls, life_s=settings.certificate_life_s, said=self._certified
        )
        certificate.note()
        net = self._make_net(tls)
        self._driver = Driver(
            replica,
            net,
            before_turn=self._before_turn,
            on_tick=self._on_tick,
            on_fatal=self._fail,
            tick_s=settings.tick_ms / 1000,
        )
        desk = self._make_desk()
        server = RpcServer(
            cluster_id=replica.storage.genesis.cluster_id,
            replica=settings.node_id,
            handler=self._submit,
            position=self._position,
            report=LOG.info,
            opening=desk.opening,
            is_member=self._company.is_member,
        )
        await net.start(*parse_tcp_address(settings.raft_address))
        await server.start_unix(str(self._directory / settings.socket))
        await server.start_tls(*parse_tcp_address(settings.rpc_address), tls, strangers=True)
        self._snapshots = SnapshotProcess(self._directory, replica.snapshot_written, LOG)
        self._beside.start(self._directory, self._snapshots, LOG)
        self._driver.start()
        certificate.begin(show=(server.show_certificates, net.show_certificate), failed=self._fail)
        self._say_it_serves()
        fault = await run_until_stopped(self._failed)
        self._notifier.tell("STOPPING=1")
        certificate.end()
        if fault is None:
            await self._company.hand_over()
        await server.close()
        await desk.close()
        await net.close()
        await self._beside.stop()
        await self._driver.stop()
        await self._snapshots.stop()
        if fault is not None:
            raise fault
        replica.close()

    def _make_net(self, tls: TlsFiles) -> PeerNet[Traffic]:
        """Return what carries messages between the controllers."""
        company, replica = self._company, self._replica
        net = make_net(
            replica.identity,
            replica.neighbours(),
            tls,
            self._receive,
            lambda peer, sentence: LOG.info(sentence),
            newest_id=company.newest_id,
            removed=company.removed,
        )
        company.attach(net)
        return net

    def _say_it_serves(self) -> None:
        settings, index = self._settings, self._front.state.index
        where = f"on {settings.rpc_address}, from entry {index}"
        LOG.info("controller %d serves %s", settings.node_id, where)
        self._notifier.tell("READY=1")

    def _make_desk(self) -> HostDesk:
        """Return the desk where hosts join and renew."""
        return HostDesk(
            self._directory / AUTHORITY_DIRECTORY,
            cluster_id=self._replica.storage.genesis.cluster_id,
            submit=self._submit,
            addresses=self._addresses,
            life_s=self._settings.certificate_life_s,
        )

    # -- what the loop calls
    def _receive(self, message: Traffic) -> None:
        if isinstance(message, AuthorityAsk | AuthorityTell):
            self._company.take(message)
        else:
            self._driver.receive(message)

    def _submit(self, call: Call, actor: Actor, respond: Respond) -> None:
        self._front.submit(call, actor, respond)
        self._driver.wake()

    def _position(self) -> tuple[int, int]:
        """Return incarnation and commit index, for a client's welcome."""
        return self._front.state.cluster[1].incarnation, self._front.commit

    def _before_turn(self) -> None:
        if self._replica.is_attached:
            self._front.before_turn()

    def _on_tick(self) -> None:
        self._ticks += 1
        self._say_notes()
        self._company.on_tick()
        if not self._replica.is_attached:
            return
        self._front.on_tick()
        self._log_level.follow(self._front.state)
        self._beside.on_tick()
        self._say_role()
        if self._ticks % DISK_CHECK_TICKS == 0:
            self._look_at_disk()
        if self._ticks % FREEZE_TICKS == 0:
            freeze_garbage()
        if self._ticks % SYNC_TICKS == 0:
            self._replica.sync_ledger()
        if self._replica.recorded - self._replica.snapshot_index >= self._settings.snapshot_entries:
            self._want_snapshot()

    def _say_role(self) -> None:
        """Say who leads when that changes."""
        core = self._replica.core
        if (core.leader, core.term) == self._role:
            return
        self._role = (core.leader, core.term)
        if core.leader == core.me:
            role = f"this controller leads in term {core.term}"
        elif core.leader:
            role = f"controller {core.leader} leads in term {core.term}"
        else:
            role = f"no leader is known in term {core.term}"
        LOG.info("%s", role)
        self._notifier.tell(f"STATUS={role}")

    def _say_notes(self) -> None:
        notes = self._replica.storage.notes
        while notes:
            LOG.warning("%s", notes.pop(0))

    def _want_snapshot(self) -> None:
        if not self._snapshots.is_writing and not self._snapshot_is_due:
            self._snapshot_is_due = True
            self._replica.snapshot_wanted(self._begin_snapshot)

    def _begin_snapshot(self) -> None:
        self._snapshot_is_due = False
        self._snapshots.want()

    def _look_at_disk(self) -> None:
        """Take note of the two marks, and say when one is crossed. Source: LOG-CONTRACT 5.9."""
        settings, front, replica = self._settings, self._front, self._replica
        free_mib = self._disk.free_bytes() // MIB
        low = free_mib < settings.disk_first_mark_mib
        out = free_mib < settings.disk_second_mark_mib
        if (low, out) != (front.disk_is_low, not replica.acknowledges):
            if out:
                now = f"below {settings.disk_second_mark_mib} this controller acknowledges nothing"
            elif low:
                now = f"below {settings.disk_first_mark_mib} nothing new is taken from users"
            else:
                now = "everything is taken again"
            LOG.warning("%d MiB are free on the disk: %s", free_mib, now)
        front.disk_is_low = low
        replica.acknowledges = not out
        replica.free_mib = free_mib
        self._company.prefer_freer(free_mib, settings.disk_first_mark_mib)

    def _certified(self, authority: bytes, until_ns: int) -> None:
        """Let whoever asks know which authority there is, and how long the certificate holds."""
        self._beside.certified = authority, until_ns

    def _addresses(self) -> tuple[str, ...]:
        """Return where calls of every controller are taken."""
        return tuple(member.rpc_address for member in self._replica.core.members.members)

    def _wake(self) -> None:
        self._driver.wake()

    def _fail(self, error: BaseException) -> None:
        if not self._failed.done():
            self._failed.set_result(error)


def _clocks(settings: Settings) -> MachineClocks:
    moving = settings.clock_offset_file
    return MachineClocks(settings.clock_offset_ms * 1_000_000, Path(moving) if moving else None)


def _breathe() -> None:
    """Let the loop have the interpreter; called in the threads of the disk during long work.

    A thread that only computes costs the loop half a millisecond at each of its system calls.
    """
    time.sleep(BREATH_S)
