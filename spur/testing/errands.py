"""What tests ask of real controllers, one thing after the other.

Each name of a job is used once, so what was acknowledged can be told from what is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count

from msgspec.structs import replace

from spur.client.blocking import BlockingClient
from spur.testing.builders import SMALL_CONFIG
from spur.testing.controllers import PATIENCE_S, ControllerProcess, Controllers
from spur.testing.hall import SPEC, submission
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.values.errors import SpurError
from spur.values.ids import JobId
from spur.wire.cluster import Configured, Reconfigure, ReplicaInfo, ShowReplica
from spur.wire.declare import Attachment
from spur.wire.jobs import JobAccepted, JobFilter, JobPage, QueryJobs, SubmitJob, page_views

__all__ = ["SECRET", "configure", "info", "jobs", "submit", "submit_many", "submit_one", "until"]

SECRET = b"PRIVATE-a4f1"
"""In the script of each job: text that nobody but its owner is to read."""

_numbers = count(1)


def until(what: str, is_so: Callable[[], bool], *, patience_s: float = PATIENCE_S) -> None:
    """Wait for something. Raises: SpurError when it does not come."""
    end_s = time.monotonic() + patience_s
    while not is_so():
        if time.monotonic() > end_s:
            raise SpurError(f"{what}: waited {patience_s:g} s in vain")
        time.sleep(0.02)


def configure(client: BlockingClient) -> None:
    """Give the cluster its first configuration. Raises: SpurError when it is refused."""
    answer = client.ask(Reconfigure((ConfigFile(CONFIG_FILE, SMALL_CONFIG),)), Configured)
    if not isinstance(answer, Configured):
        raise SpurError(str(answer))


def submit_one(name: str) -> SubmitJob:
    """Return the submission of a held job with a private script."""
    request = submission(replace(SPEC, name=name), hold=True)
    script = Attachment("script", b"#!/bin/sh\necho " + SECRET + b" " + name.encode() + b"\n")
    return replace(request, attachments=(script, *request.attachments[1:]))


def submit(client: BlockingClient) -> tuple[str, int]:
    """Submit a held job; return its name and id. Raises: SpurError when it is refused."""
    name = f"job-{next(_numbers)}"
    answer = client.ask(submit_one(name), JobAccepted)
    if not isinstance(answer, JobAccepted):
        raise SpurError(str(answer))
    return name, answer.job_id


def submit_many(client: BlockingClient, number: int) -> dict[str, int]:
    """Submit so many held jobs; return their ids by name."""
    return dict(submit(client) for _ in range(number))


def jobs(client: BlockingClient) -> dict[str, int]:
    """Return the ids of all jobs by name. Raises: SpurError when a name is there twice."""
    found: dict[str, int] = {}
    after: JobId | None = JobId(0)
    while after is not None:
        page = client.ask(QueryJobs(JobFilter(), after, 1000), JobPage)
        if not isinstance(page, JobPage):
            raise SpurError(str(page))
        for view in page_views(page):
            if view.spec.name in found:
                raise SpurError(f"{view.spec.name} is there twice")
            found[view.spec.name] = view.job_id
        after = page.next
    return found


def info(controllers: Controllers, member: ControllerProcess) -> ReplicaInfo:
    """Return what one controller knows of itself."""
    with controllers.blocking(member) as client:
        answer = client.ask(ShowReplica(), ReplicaInfo)
    if not isinstance(answer, ReplicaInfo):
        raise SpurError(str(answer))
    return answer
