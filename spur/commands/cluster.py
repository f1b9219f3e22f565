"""Commands about the cluster as a whole."""

from __future__ import annotations

from collections.abc import Sequence

from spur.commands.decide import Context, Decision, command
from spur.commands.licenses import licenses_beyond
from spur.commands.permissions import Permission
from spur.commands.placement import held_beyond
from spur.events.cluster import (
    ClusterCheckpointed,
    ClusterConfigured,
    ClusterRestored,
    ClusterVersionRaised,
    HostRemoved,
    ParameterSet,
)
from spur.events.cluster import HostAdded as HostWasAdded
from spur.events.declare import NEWEST_CLUSTER_VERSION, Event
from spur.events.joining import HostCertified
from spur.projections.cluster import config_of, parameter_of
from spur.projections.digest import digest_version, state_digest
from spur.projections.nodeviews import cluster_info, config_info
from spur.projections.state import State
from spur.slurm.configfile import GRES_FILE, SLURM_FILE, TOPOLOGY_FILE, parse_slurm_config
from spur.values.config import Config, ConfigFile
from spur.values.configdiff import compare_configs
from spur.values.configfile import CONFIG_FILE, ConfigErrors, parse_config
from spur.values.errors import Rejection
from spur.values.ids import NAME_GRAMMAR, HostId, is_name
from spur.values.words import with_article
from spur.wire.cluster import (
    AddHost,
    Checkpoint,
    Configured,
    HostAdded,
    RaiseVersion,
    Reconfigure,
    RecordRestore,
    RemoveHost,
    SetParameter,
    ShowCluster,
    ShowConfig,
    ShowReplica,
)
from spur.wire.declare import Done
from spur.wire.hello import HOST_ROLES

__all__ = [
    "decide_add_host",
    "decide_checkpoint",
    "decide_raise_version",
    "decide_reconfigure",
    "decide_record_restore",
    "decide_remove_host",
    "decide_show_cluster",
    "decide_show_config",
    "decide_show_replica",
]

_KEY_DIGEST_SIZE = 32

_BESIDE = (CONFIG_FILE, GRES_FILE, TOPOLOGY_FILE)

CONFIG_FILES_MAX = 200
"""Files of one configuration, included ones too."""

ERRORS_SHOWN_MAX = 20
"""Errors of a configuration that a refusal lists; more are counted."""


def _read_files(request: Reconfigure) -> Config | Rejection:
    """Return what the files mean, or why they are refused: seconds for a large cluster's."""
    refused = _refuse_files([file.name for file in request.files])
    if refused:
        return Rejection("bad-configuration", f"{refused}; nothing was changed")
    try:
        return _parse(request.files)
    except ConfigErrors as errors:
        shown = errors.sentences[:ERRORS_SHOWN_MAX]
        more = len(errors.sentences) - len(shown)
        lines = [*shown, *([f"and {more} more"] if more else []), "nothing was changed"]
        return Rejection("bad-configuration", "\n".join(lines))


@command(Reconfigure, permission=Permission.ADMINISTRATOR, needs_room=True, prepare=_read_files)
def decide_reconfigure(
    state: State, request: Reconfigure, context: Context
) -> Decision | Rejection:
    """Take the files when all of them are right; the event holds what they mean."""
    config = _read_files(request) if context.prepared is None else context.prepared
    if isinstance(config, Rejection):
        return config
    before = config_of(state)
    changes = compare_configs(before, config)
    if not changes and before is not None and before.parser_version == config.parser_version:
        return Decision((), Configured(0, state.config[1].index))
    beyond = held_beyond(state, config.nodes) or licenses_beyond(state, config.parameters)
    if beyond is not None:
        return beyond
    event = ClusterConfigured(
        parser_version=config.parser_version,
        settings=config.settings,
        roles=config.roles,
        nodes=config.nodes,
        partitions=config.partitions,
        topology=config.topology,
        parameters=config.parameters,
        changes=changes,
    )
    return Decision((event,), Configured(len(changes), context.index))


_SETTABLE = frozenset({"DebugFlags", "FairShareDampeningFactor", "SlurmctldDebug"})

_VALUE_LENGTH_MAX = 1_024


@command(SetParameter, permission=Permission.ADMINISTRATOR)
def decide_set_parameter(
    state: State, request: SetParameter, context: Context
) -> Decision | Rejection:
    """Set one of the parameters that change while the cluster runs."""
    if request.name not in _SETTABLE or len(request.value) > _VALUE_LENGTH_MAX:
        return Rejection(
            "invalid-value",
            f"{request.name!r} can be set by a configuration alone; nothing was changed",
        )
    if 1 not in state.config:
        return Rejection("wrong-state", "there is no configuration yet; nothing was changed")
    value = request.value
    if request.name == "DebugFlags":
        value = _with_flags(parameter_of(state, request.name), value)
    if parameter_of(state, request.name) == value:
        return Decision((), Done())
    return Decision((ParameterSet(request.name, value),), Done())


def _with_flags(present: str, changes: str) -> str:
    """Return flags after changes such as +Backfill,-Steps; they are told apart by small letters."""
    flags = {flag.lower(): flag for flag in present.split(",") if flag}
    for change in changes.split(","):
        flag = change.lstrip("+-")
        if change.startswith("-"):
            flags.pop(flag.lower(), None)
        elif flag:
            flags.setdefault(flag.lower(), flag)
    return ",".join(flags[name] for name in sorted(flags))


def _refuse_files(names: Sequence[str]) -> str:
    """Return why files of these names can't be a configuration; empty when they can."""
    if len(names) > CONFIG_FILES_MAX:
        return f"{len(names)} files are handed in; it takes at most {CONFIG_FILES_MAX}"
    if len(set(names)) < len(names):
        return "a file is handed in twice"
    if not all(name and name.isprintable() for name in names):
        return "a file has no name that can be shown"
    if names == [CONFIG_FILE] or (names and names[0] not in _BESIDE):
        return ""
    return (
        f"the files handed in are {', '.join(names) or 'none'}; it takes {CONFIG_FILE} alone, or "
        f"{SLURM_FILE} first and then what belongs to it"
    )


def _parse(files: Sequence[ConfigFile]) -> Config:
    """Return what the files say, in whichever words. Raises: ConfigErrors."""
    if files[0].name == CONFIG_FILE:
        return parse_config(files[0])
    return parse_slurm_config(files)


@command(Checkpoint, permission=Permission.CLUSTER)
def decide_checkpoint(state: State, request: Checkpoint, context: Context) -> Decision:
    """Write down what the state is after its last entry."""
    event = ClusterCheckpointed(
        index=state.index,
        chain=state.chain,
        digest=state_digest(state),
        version=digest_version(state),
    )
    return Decision((event,), Done())


@command(RaiseVersion, permission=Permission.CLUSTER)
def decide_raise_version(
    state: State, request: RaiseVersion, context: Context
) -> Decision | Rejection:
    """Raise the version that may be written; the shell has asked every member what it reads."""
    present = state.cluster[1].version
    if request.version == present:
        return Decision((), Done())
    if not present < request.version <= NEWEST_CLUSTER_VERSION:
        return Rejection(
            "invalid-value",
            f"cluster version {request.version} is not between the present {present} and "
            f"{NEWEST_CLUSTER_VERSION}, the newest that this release reads; nothing was changed",
        )
    return Decision((ClusterVersionRaised(request.version),), Done())


@command(RecordRestore, permission=Permission.CLUSTER)
def decide_record_restore(
    state: State, request: RecordRestore, context: Context
) -> Decision | Rejection:
    """Begin a new incarnation at this entry of the log."""
    present = state.cluster[1].incarnation
    if request.incarnation <= present:
        return Rejection(
            "invalid-value",
            f"incarnation {request.incarnation} is not above the present {present}; "
            "nothing was changed",
        )
    event = ClusterRestored(request.incarnation, state.index, state.chain, request.why)
    return Decision((event,), Done())


@command(AddHost, permission=Permission.ADMINISTRATOR)
def decide_add_host(state: State, request: AddHost, context: Context) -> Decision | Rejection:
    """Give a host its id. The same host asked for twice keeps its id.

    What certificate it gets is remembered, for those who look when it ends.
    """
    if request.role not in HOST_ROLES:
        return Rejection(
            "invalid-value",
            f"role {request.role!r}; a host is one of {', '.join(HOST_ROLES)}; nothing was changed",
        )
    known = state.host_of_name.key(request.name)
    if known is not None:
        if state.hosts[known].role == request.role:
            return Decision(_certified(state, known, request), HostAdded(known))
        return Rejection(
            "wrong-state",
            f"host {request.name!r} is {with_article(state.hosts[known].role)} host;"
            " nothing was changed",
            "remove it first",
        )
    if not is_name(request.name):
        return Rejection(
            "invalid-value",
            f"{request.name!r} is no host name: it takes {NAME_GRAMMAR}; nothing was changed",
        )
    if request.key and len(request.key) != _KEY_DIGEST_SIZE:
        return Rejection(
            "invalid-value", f"a key's digest has {_KEY_DIGEST_SIZE} bytes; nothing was changed"
        )
    event = HostWasAdded(request.name, request.role)
    given = HostId(context.index)
    return Decision((event, *_certified(state, given, request)), HostAdded(given))


def _certified(state: State, host_id: HostId, request: AddHost) -> tuple[Event, ...]:
    """Return what is to be remembered of the host's certificate."""
    known = state.hosts.get(host_id)
    if not request.key or (known is not None and known.key == request.key):
        return ()
    return (HostCertified(host_id, request.key, request.ends_ns),)


@command(RemoveHost, permission=Permission.ADMINISTRATOR)
def decide_remove_host(state: State, request: RemoveHost, context: Context) -> Decision | Rejection:
    """Let the host vouch for nothing any more."""
    known = state.host_of_name.key(request.name)
    if known is None:
        return Rejection("unknown-host", f"no host is named {request.name!r}; nothing was changed")
    return Decision((HostRemoved(known),), Done())


@command(ShowReplica, permission=Permission.USER, local=True)
def decide_show_replica(
    state: State, request: ShowReplica, context: Context
) -> Decision | Rejection:
    """Show what the controller knows of itself."""
    if context.replica is None:
        return Rejection(
            "invalid-value", "no controller was called that could say what it is", "call one"
        )
    return Decision((), context.replica)


@command(ShowConfig, permission=Permission.USER, reads=True)
def decide_show_config(state: State, request: ShowConfig, context: Context) -> Decision:
    """Show the configuration that is in force."""
    return Decision((), config_info(state))


@command(ShowCluster, permission=Permission.USER, reads=True)
def decide_show_cluster(state: State, request: ShowCluster, context: Context) -> Decision:
    """Show what the cluster is."""
    return Decision((), cluster_info(state))
