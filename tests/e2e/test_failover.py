"""Three real controllers: the leader dies, and nothing that was acknowledged is lost."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from spur.testing.builders import SMALL_CONFIG
from spur.testing.controllers import Controllers
from spur.testing.hall import submission
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.values.ids import JobId
from spur.wire.cluster import Configured, Reconfigure
from spur.wire.jobs import JobAccepted, JobFilter, JobPage, QueryJobs, page_views


@pytest.fixture
def controllers(tmp_path: Path) -> Iterator[Controllers]:
    """Yield a running cluster of three."""
    cluster = Controllers.create(tmp_path, 3, first_port=21500)
    cluster.start()
    yield cluster
    cluster.stop()


async def submit_through_kills(controllers: Controllers, kills: int) -> list[int]:
    """Submit, kill the leader, submit again ...; return the job ids that were answered."""
    accepted: list[int] = []
    async with controllers.client() as client:
        answer = await client.ask(Reconfigure((ConfigFile(CONFIG_FILE, SMALL_CONFIG),)), Configured)
        assert isinstance(answer, Configured)
        for _ in range(kills):
            leader = await controllers.leader()
            leader.kill()
            for _ in range(5):
                job = await client.ask(submission(hold=True), JobAccepted)
                assert isinstance(job, JobAccepted)
                accepted.append(job.job_id)
            leader.start()
        page = await client.ask(QueryJobs(JobFilter(), JobId(0), 1000), JobPage)
        assert isinstance(page, JobPage)
        assert len(page_views(page)) == len(accepted)
    return accepted


def test_leader_killed_again_and_again_loses_nothing(controllers: Controllers) -> None:
    """Somebody submits all the while, and each answered submission is one job."""
    accepted = asyncio.run(submit_through_kills(controllers, 3))
    assert accepted == sorted(set(accepted))
    assert len(accepted) == 15


def test_restarted_cluster_has_everything(controllers: Controllers) -> None:
    """All controllers are killed at once, and start again."""
    asyncio.run(submit_through_kills(controllers, 1))
    for member in controllers.members:
        member.kill()
    controllers.start()

    async def count() -> int:
        async with controllers.client() as client:
            page = await client.ask(QueryJobs(JobFilter(), JobId(0), 1000), JobPage)
        assert isinstance(page, JobPage)
        return len(page_views(page))

    assert asyncio.run(count()) == 5
