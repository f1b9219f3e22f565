"""What must hold once everything was healed.

liveness        the cluster answers, within a few seconds
linearizable    what the clients saw of the registers has one order that explains it
once            every acknowledged submission is one job; none is there twice
equal           all controllers stand at one entry, with one chain and one state
clean           every controller ends with status 0 when it is told to
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

from spur.client.client import Client
from spur.controller.logtool import head, verify
from spur.testing.controllers import ControllerProcess, Controllers
from spur.testing.live.load import FIRST_VALUES, Load, Wrong, register
from spur.testing.simulation.linearizability import is_linearizable
from spur.values.errors import SpurError
from spur.values.ids import JobId
from spur.wire.cluster import ReplicaInfo, ShowReplica
from spur.wire.jobs import JobFilter, JobPage, QueryJobs, page_views

__all__ = ["Verdict", "end", "judge"]

PATIENCE_S = 20.0
"""Within which a healed cluster must answer, and its controllers must stand at one place."""


@dataclass(frozen=True)
class Verdict:
    """Where all controllers stood at the end."""

    index: int
    chain: str
    term: int


async def judge(controllers: Controllers, client: Client, load: Load) -> Verdict:
    """Judge a run whose troubles are over. Raises: Wrong."""
    await _must_answer(client, load)
    await _read_registers(client, load)
    await _must_be_there_once(client, load)
    if not is_linearizable(load.history, FIRST_VALUES, register):
        raise Wrong("what the clients saw of the registers is not linearizable")
    term = await _must_converge(controllers)
    reports = await asyncio.gather(
        *(asyncio.to_thread(_report, member) for member in controllers.members)
    )
    first = reports[0]
    for report in reports[1:]:
        if report != first:
            raise Wrong(f"the controllers differ: {first} and {report}")
    return Verdict(first["index"], first["chain"], term)


def end(controllers: Controllers) -> None:
    """End every controller. Raises: Wrong when one does not end well."""
    statuses = [member.stop() for member in controllers.members]
    if any(statuses):
        raise Wrong(f"controllers ended with statuses {statuses}")


async def _must_answer(client: Client, load: Load) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            await load.submit_one(client)
        except SpurError as error:
            if isinstance(error, Wrong) or time.monotonic() > end_s:
                raise Wrong(f"a healed cluster does not answer: {error}") from error
        else:
            return


async def _read_registers(client: Client, load: Load) -> None:
    """Read every register once more: what was acknowledged last must be there."""
    for job_id in load.registers:
        if not await load.operate(client, job_id, None, load.read_of(job_id)):
            raise Wrong(f"a healed cluster does not answer a read of job {job_id}")


async def _must_be_there_once(client: Client, load: Load) -> None:
    found: dict[str, int] = {}
    after: JobId | None = JobId(0)
    while after is not None:
        page = await client.ask(QueryJobs(JobFilter(), after, 1000), JobPage)
        if not isinstance(page, JobPage):
            raise Wrong(f"the jobs can't be listed: {page}")
        for view in page_views(page):
            if view.spec.name in found:
                raise Wrong(f"{view.spec.name} was submitted once and is there twice")
            found[view.spec.name] = view.job_id
        after = page.next
    for name, job_id in load.acknowledged.items():
        if found.get(name) != job_id:
            raise Wrong(f"{name} was acknowledged as job {job_id}, and is {found.get(name)}")
    strangers = found.keys() - load.asked_names
    if strangers:
        raise Wrong(f"nobody submitted {sorted(strangers)}")


async def _must_converge(controllers: Controllers) -> int:
    """Wait until all controllers stand at one place; return the term."""
    end_s = time.monotonic() + PATIENCE_S
    while True:
        infos = [await _info(controllers, member) for member in controllers.members]
        places = {(info.last, info.commit, info.recorded) for info in infos if info is not None}
        if None not in infos and len(places) == 1 and len(set(*places)) == 1:
            return max(info.term for info in infos if info is not None)
        if time.monotonic() > end_s:
            raise Wrong(f"the controllers do not come to stand at one place: {infos}")
        await asyncio.sleep(0.1)


async def _info(controllers: Controllers, member: ControllerProcess) -> ReplicaInfo | None:
    try:
        async with controllers.local(member, deadline_s=1.0) as client:
            answer = await client.ask(ShowReplica(), ReplicaInfo)
    except SpurError:
        return None
    return answer if isinstance(answer, ReplicaInfo) else None


def _report(member: ControllerProcess) -> dict[str, Any]:
    """Read a running controller's whole log, and rebuild its state from it."""
    directory = str(member.directory)
    ending, report = head(directory), verify(directory, replay=True)
    if report["missing"] or report["torn"] or report["attachments_missing"]:
        raise Wrong(f"{member.directory.name} is not whole: {report}")
    return {
        "index": ending["index"],
        "chain": ending["chain"],
        "state": report["state"],
        "attachments": report["attachments"],
    }
