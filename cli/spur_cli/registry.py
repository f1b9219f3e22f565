"""The table of commands: one row each; help, dispatch and the reference page follow from it.

Rows are named tuples, not dataclasses: every command pays for this import, and `dataclasses` alone
would double it.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["COMMANDS", "Command", "find"]


class Command(NamedTuple):
    """One command of the `spur` program."""

    words: tuple[str, ...]
    """What is typed after `spur`; the longest row that fits is taken."""
    module: str
    """Module under `spur_cli.commands`; its `run(arguments, tool)` returns the exit status."""
    summary: str
    """One line for the list of commands."""
    executes: str = ""
    """Module of a daemon's room that does the work. It is executed, not imported, so that this
    package stays free of what only a controller's machine needs. Empty for most commands."""
    alias: str = ""
    """Slurm's name; called by it, the program is this command. Empty when Slurm has none."""


_LOG_TOOL = "spur.controller.logtool"
_MIGRATE_TOOL = "spur.migrate.tool"
_UP_TOOL = "spur.up.tool"

COMMANDS: tuple[Command, ...] = (
    Command(
        words=("clock", "accept"),
        module="clock",
        summary="vouch for a single controller's clock after it stepped",
    ),
    Command(
        words=("conf", "check"),
        module="conf",
        summary="say which parameters of a slurm.conf are honoured, and what is wrong with it",
    ),
    Command(
        words=("controller", "add"),
        module="controller",
        summary="add a controller to the cluster of this machine, and wait until it votes",
        executes=_UP_TOOL,
    ),
    Command(
        words=("controller", "list"),
        module="controller",
        summary="show the controllers: who leads, who votes, and how far each is",
    ),
    Command(
        words=("controller", "remove"),
        module="controller",
        summary="take a controller out of the cluster for good",
        executes=_UP_TOOL,
    ),
    Command(
        words=("controller", "repair"),
        module="controller",
        summary="remove a controller of this machine, and add it with an empty disk and another id",
        executes=_UP_TOOL,
    ),
    Command(
        words=("down",),
        module="up",
        summary="end the cluster of this machine",
        executes=_UP_TOOL,
    ),
    Command(
        words=("env",),
        module="up",
        summary="print what a shell needs to find the cluster of this machine",
        executes=_UP_TOOL,
    ),
    Command(
        words=("host", "list"),
        module="host",
        summary="show the hosts of the cluster, and how long their certificates hold",
    ),
    Command(
        words=("host", "remove"),
        module="host",
        summary="take a host out of the cluster: its certificate vouches for nothing any more",
    ),
    Command(
        words=("join",),
        module="join",
        summary="let this host into a cluster, with a token",
        executes="spur.controller.join",
    ),
    Command(
        words=("link",),
        module="link",
        summary="make Slurm's names for these commands in a directory",
    ),
    Command(
        words=("log", "show"),
        module="log",
        summary="show the entries of a controller's log",
        executes=_LOG_TOOL,
    ),
    Command(
        words=("log", "head"),
        module="log",
        summary="show where a controller's log ends, and its chain value",
        executes=_LOG_TOOL,
    ),
    Command(
        words=("log", "verify"),
        module="log",
        summary="read all of a controller's log and check every byte",
        executes=_LOG_TOOL,
    ),
    Command(
        words=("log", "export"),
        module="log",
        summary="write a controller's log as JSON lines, without private text",
        executes=_LOG_TOOL,
    ),
    Command(
        words=("migrate", "check"),
        module="migrate",
        summary="say of a site's scripts and slurm.conf what works here, what differs, what fails",
        executes=_MIGRATE_TOOL,
    ),
    Command(
        words=("migrate", "conf"),
        module="migrate",
        summary="write a slurm.conf as spur.toml, with a comment on each change",
        executes=_MIGRATE_TOOL,
    ),
    Command(
        words=("node", "confirm-dead"),
        module="node",
        summary="vouch that nothing runs any more on a lost node, which was switched off",
    ),
    Command(
        words=("reconfigure",),
        module="reconfigure",
        summary="hand a slurm.conf or spur.toml to the cluster, and show what changes",
    ),
    Command(
        words=("sacct",),
        module="sacct",
        summary="show the records of jobs, those of long ago too",
        alias="sacct",
    ),
    Command(
        words=("sacctmgr",),
        module="sacctmgr",
        summary="show and change accounts, users, associations and QOS",
        alias="sacctmgr",
    ),
    Command(
        words=("salloc",),
        module="salloc",
        summary="hold an allocation while a command or a shell runs",
        alias="salloc",
    ),
    Command(
        words=("scrontab",),
        module="scrontab",
        summary="show and change the jobs that come again",
        alias="scrontab",
    ),
    Command(
        words=("sattach",),
        module="sattach",
        summary="listen to the tasks of a step that runs, and write to them",
        alias="sattach",
    ),
    Command(
        words=("sbatch",),
        module="sbatch",
        summary="submit a batch script",
        alias="sbatch",
    ),
    Command(
        words=("sbcast",),
        module="sbcast",
        summary="send a file to every node of a job",
        alias="sbcast",
    ),
    Command(
        words=("scancel",),
        module="scancel",
        summary="end jobs, or send them a signal",
        alias="scancel",
    ),
    Command(
        words=("scontrol",),
        module="scontrol",
        summary="show jobs, nodes and partitions in detail, and change jobs",
        alias="scontrol",
    ),
    Command(
        words=("sdiag",),
        module="sdiag",
        summary="show what the leading controller counts: requests, jobs, cycles of its scheduler",
        alias="sdiag",
    ),
    Command(
        words=("sinfo",),
        module="sinfo",
        summary="show partitions and nodes at a glance",
        alias="sinfo",
    ),
    Command(
        words=("sprio",),
        module="sprio",
        summary="show what the priorities of waiting jobs are made of",
        alias="sprio",
    ),
    Command(
        words=("squeue",),
        module="squeue",
        summary="show the jobs that wait and run",
        alias="squeue",
    ),
    Command(
        words=("sreport",),
        module="sreport",
        summary="show what accounts and users had of the cluster",
        alias="sreport",
    ),
    Command(
        words=("sshare",),
        module="sshare",
        summary="show the shares of accounts and users",
        alias="sshare",
    ),
    Command(
        words=("sstat",),
        module="sstat",
        summary="show what the steps of running jobs use",
        alias="sstat",
    ),
    Command(
        words=("status",),
        module="up",
        summary="show every process of the cluster of this machine",
        executes=_UP_TOOL,
    ),
    Command(
        words=("up",),
        module="up",
        summary="bring up a cluster on this machine, or what of it is down",
        executes=_UP_TOOL,
    ),
    Command(
        words=("srun",),
        module="srun",
        summary="run a command as parallel tasks, alone or as a step of a job",
        alias="srun",
    ),
    Command(
        words=("story",),
        module="story",
        summary="tell what happened to a job, when, and who asked for it",
    ),
    Command(
        words=("surface",),
        module="surface",
        summary="say how much of Slurm's commands there is: every option, column and variable",
    ),
    Command(
        words=("token", "create"),
        module="token",
        summary="let one host join the cluster, with a token that is printed once",
    ),
    Command(
        words=("token", "list"),
        module="token",
        summary="show the join tokens: which are valid, and who used the others",
    ),
    Command(
        words=("token", "revoke"),
        module="token",
        summary="take back a join token that was not used",
    ),
    Command(
        words=("version",),
        module="version",
        summary="say which version this is",
    ),
    Command(
        words=("why",),
        module="why",
        summary="say what keeps a job waiting: each filter, what was asked and what is there",
    ),
)


def find(name: str, arguments: list[str]) -> tuple[Command, list[str]] | None:
    """Return the command meant and the arguments left for it, or None if no row fits.

    `name` is the base name the program was called by: a Slurm name selects its row by itself.
    """
    for row in COMMANDS:
        if row.alias and row.alias == name:
            return row, arguments
    fitting = [row for row in COMMANDS if tuple(arguments[: len(row.words)]) == row.words]
    if not fitting:
        return None
    best = max(fitting, key=lambda row: len(row.words))
    return best, arguments[len(best.words) :]
