"""What a batch script's process is made of: variables, files, limits, CPUs."""

from __future__ import annotations

import os
import resource

from spur.agent.cpus import bound_cpus
from spur.agent.identity import User
from spur.agent.manifest import Site
from spur.agent.outputs import Files
from spur.agent.program import Setup
from spur.slurm.filenames import FileFacts, default_output, expand_pattern
from spur.slurm.hetenv import het_environment, is_of_het_job
from spur.slurm.jobenv import KEPT, BatchFacts, batch_environment, decode_environment
from spur.slurm.rlimits import is_limit, propagated
from spur.values.jobspec import JobText, decode_text
from spur.wire.agents import LaunchOrder

__all__ = [
    "batch_files",
    "batch_setup",
    "limits_of",
    "text_of",
    "user_environment",
]

USER_ENVIRONMENT_S = 10
"""Seconds that a login shell may take to say which variables it sets."""

_NO_TEXT = JobText(b"/", (b"",), b"", b"", b"", b"")


def text_of(order: LaunchOrder) -> JobText:
    """Return the text of the submission; something harmless when it gave none."""
    return decode_text(order.text) if order.text else _NO_TEXT


def batch_files(order: LaunchOrder, text: JobText, user: User) -> Files:
    """Return the names of a batch job's files."""
    facts = FileFacts(
        job_id=order.job_id,
        array_id=order.array_id or order.job_id,
        array_task=order.task,
        step=None,
        node=order.node,
        node_place=0,
        task=0,
        user=user.name,
        job_name=order.spec.name,
    )
    output = text.stdout_path or default_output(order.task is not None)
    return Files(
        directory=text.working_directory,
        stdin=expand_pattern(text.stdin_path or b"/dev/null", facts),
        stdout=expand_pattern(output, facts),
        stderr=expand_pattern(text.stderr_path, facts),
        appends=_appends(dict(text.options).get("open-mode", b""), order.file_append),
        umask=_umask(decode_environment(order.environment)),
    )


def batch_setup(
    order: LaunchOrder, site: Site, text: JobText, user: User, script: bytes, words: str
) -> Setup:
    """Return the program of a batch script that lies at a path."""
    submitted = decode_environment(order.environment)
    umask, limits = _umask(submitted), limits_of(submitted, order.propagated)
    environment = {}
    if submitted.get(b"SLURM_GET_USER_ENV"):
        environment = user_environment(user)
    environment |= {n: v for n, v in submitted.items() if not is_limit(n) and not is_of_het_job(n)}
    for name, value in KEPT.items():
        environment.setdefault(name, value)
    facts = BatchFacts(
        job_id=order.job_id,
        array_id=order.array_id,
        task=order.task,
        array_count=order.array_count,
        array_min=order.array_min,
        array_max=order.array_max,
        array_step=order.array_step,
        restarts=order.run,
        uid=order.uid,
        gid=order.gid,
        user=user.name,
        spec=order.spec,
        partition=order.partition,
        options=dict(text.options),
        nodes=tuple(share.node for share in order.shares),
        cpus=tuple(share.cpus for share in order.shares),
        gpus=order.shares[0].gpus,
        pools=order.block.gres,
        default_memory_per=order.default_memory_per,
        default_memory_mib=order.default_memory_mib,
        cluster=order.cluster_name,
        topology=order.topology,
        topology_pattern=order.topology_pattern,
        working_cluster=site.working_cluster,
    )
    for name, given in batch_environment(facts).items():
        if given is None:
            environment.pop(name, None)
        else:
            environment[name] = given
    environment |= het_environment(_components(order, text, facts))
    environment[b"SPUR_SOCKET"] = os.fsencode(site.relay)
    if site.slurm_conf:
        environment[b"SLURM_CONF"] = os.fsencode(site.slurm_conf)
    return Setup(
        path=script,
        argv=(script, *text.argv[1:]),
        environment=environment,
        directory=text.working_directory,
        umask=umask,
        limits=limits,
        cpus=bound_cpus(order.shares[0].cpu_set, order.task_plugin),
        words=words,
    )


def _components(order: LaunchOrder, text: JobText, first: BatchFacts) -> list[BatchFacts]:
    """Return what is known of each component of a het job, of which the script runs in one."""
    options = text.components or ((),) * len(order.components)
    return [
        first._replace(
            job_id=each.job_id,
            spec=each.spec,
            partition=each.partition,
            options=dict(given),
            nodes=tuple(share.node for share in each.shares),
            cpus=tuple(share.cpus for share in each.shares),
            default_memory_per=each.default_memory_per,
            default_memory_mib=each.default_memory_mib,
        )
        for each, given in zip(order.components, options, strict=False)
    ]


def _appends(open_mode: bytes, default: bool) -> bool:
    return open_mode[:1].lower() == b"a" if open_mode else default


def _umask(environment: dict[bytes, bytes]) -> int:
    text = environment.get(b"SLURM_UMASK", b"")
    try:
        return int(text, 8) & 0o777
    except ValueError:
        return 0o022


def limits_of(environment: dict[bytes, bytes], site: str) -> tuple[tuple[int, int, int], ...]:
    """Return the soft limits that a submission carries and the cluster lets through."""
    return tuple(
        (getattr(resource, f"RLIMIT_{name}"), soft, -1)
        for name, soft in propagated(environment, site).items()
    )


def user_environment(user: User) -> dict[bytes, bytes]:
    """Return the variables that a login of the user sets; empty when it takes too long.

    Source: sbatch(1) --get-user-env.
    """
    import subprocess  # few jobs need it, and it is large

    # A shell that has more to do does not give its place to env, and SHLVL tells of it.
    command = "env -0; exit"
    login = ["su", "-", user.name, "-c", command]
    if os.geteuid() != 0:
        login = [user.shell, "-l", "-c", command]
    try:
        run = subprocess.run(
            login,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=USER_ENVIRONMENT_S,
            env={"HOME": user.home, "USER": user.name, "SHELL": user.shell, "PATH": os.defpath},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return decode_environment(run.stdout)
