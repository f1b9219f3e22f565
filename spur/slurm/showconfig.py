"""The configuration as `scontrol show config` tells it: every parameter, written or not.

What no file says is shown as Slurm's default; of a few that only the running cluster knows, its
value is handed in. Source: scontrol(1) show config; slurm.conf(5); transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from spur.slurm.timespec import format_long_duration, parse_time_limit
from spur.slurm.wording import VERSION
from spur.values.config import ClusterSettings, SlurmParameter

__all__ = ["ROWS", "Shown", "show_config"]

NULL = "(null)"


class Shown(NamedTuple):
    """A line."""

    name: str
    value: str = NULL
    """What is shown when no file says another."""
    unit: str = ""


ROWS: tuple[Shown, ...] = (
    Shown("AccountingStorageBackupHost"),
    Shown("AccountingStorageEnforce", "none"),
    Shown("AccountingStorageHost", "localhost"),
    Shown("AccountingStorageExternalHost"),
    Shown("AccountingStorageParameters"),
    Shown("AccountingStoragePort", "0"),
    Shown("AccountingStorageTRES", "cpu,mem,energy,node,billing,fs/disk,vmem,pages"),
    Shown("AccountingStorageType", "accounting_storage/none"),
    Shown("AccountingStorageUser", "N/A"),
    Shown("AccountingStoreFlags"),
    Shown("AcctGatherEnergyType", "acct_gather_energy/none"),
    Shown("AcctGatherFilesystemType", "acct_gather_filesystem/none"),
    Shown("AcctGatherInterconnectType", "acct_gather_interconnect/none"),
    Shown("AcctGatherNodeFreq", "0", "sec"),
    Shown("AcctGatherProfileType", "acct_gather_profile/none"),
    Shown("AllowSpecResourcesUsage", "No"),
    Shown("AuthAltTypes"),
    Shown("AuthAltParameters"),
    Shown("AuthInfo"),
    Shown("AuthType", "auth/munge"),
    Shown("BatchStartTimeout", "10", "sec"),
    Shown("BcastExclude", "/lib,/usr/lib,/lib64,/usr/lib64"),
    Shown("BcastParameters"),
    Shown("BOOT_TIME", "Unknown"),
    Shown("BurstBufferType"),
    Shown("CliFilterPlugins"),
    Shown("ClusterName", "Unknown"),
    Shown("CommunicationParameters"),
    Shown("CompleteWait", "0", "sec"),
    Shown("CoreSpecPlugin", "core_spec/none"),
    Shown("CpuFreqDef", "Unknown"),
    Shown("CpuFreqGovernors", "OnDemand,Performance,UserSpace"),
    Shown("CredType", "cred/munge"),
    Shown("DebugFlags"),
    Shown("DefMemPerNode", "UNLIMITED"),
    Shown("DependencyParameters"),
    Shown("DisableRootJobs", "No"),
    Shown("EioTimeout", "60"),
    Shown("EnforcePartLimits", "NO"),
    Shown("Epilog"),
    Shown("EpilogMsgTime", "2000", "usec"),
    Shown("EpilogSlurmctld"),
    Shown("ExtSensorsType", "ext_sensors/none"),
    Shown("ExtSensorsFreq", "0", "sec"),
    Shown("FairShareDampeningFactor", "1"),
    Shown("FederationParameters"),
    Shown("FirstJobId", "1"),
    Shown("GetEnvTimeout", "2", "sec"),
    Shown("GresTypes"),
    Shown("GpuFreqDef", "high,memory=high"),
    Shown("GroupUpdateForce", "1"),
    Shown("GroupUpdateTime", "600", "sec"),
    Shown("HASH_VAL", "Match"),
    Shown("HealthCheckInterval", "0", "sec"),
    Shown("HealthCheckNodeState", "ANY"),
    Shown("HealthCheckProgram"),
    Shown("InactiveLimit", "0", "sec"),
    Shown("InteractiveStepOptions", "--interactive --preserve-env --pty $SHELL"),
    Shown("JobAcctGatherFrequency", "30"),
    Shown("JobAcctGatherType", "jobacct_gather/none"),
    Shown("JobAcctGatherParams"),
    Shown("JobCompHost", "localhost"),
    Shown("JobCompLoc", "/var/log/slurm_jobcomp.log"),
    Shown("JobCompPort", "0"),
    Shown("JobCompType", "jobcomp/none"),
    Shown("JobCompUser", "root"),
    Shown("JobContainerType", "job_container/none"),
    Shown("JobCredentialPrivateKey"),
    Shown("JobCredentialPublicCertificate"),
    Shown("JobDefaults"),
    Shown("JobFileAppend", "0"),
    Shown("JobRequeue", "1"),
    Shown("JobSubmitPlugins"),
    Shown("KillOnBadExit", "0"),
    Shown("KillWait", "30", "sec"),
    Shown("LaunchParameters"),
    Shown("LaunchType", "launch/slurm"),
    Shown("Licenses"),
    Shown("LogTimeFormat", "iso8601_ms"),
    Shown("MailDomain"),
    Shown("MailProg", "/bin/mail"),
    Shown("MaxArraySize", "1001"),
    Shown("MaxDBDMsgs", "120052"),
    Shown("MaxJobCount", "10000"),
    Shown("MaxJobId", "67043328"),
    Shown("MaxMemPerNode", "UNLIMITED"),
    Shown("MaxNodeCount", "Unknown"),
    Shown("MaxStepCount", "40000"),
    Shown("MaxTasksPerNode", "512"),
    Shown("MCSPlugin", "mcs/none"),
    Shown("MCSParameters"),
    Shown("MessageTimeout", "10", "sec"),
    Shown("MinJobAge", "300", "sec"),
    Shown("MpiDefault", "none"),
    Shown("MpiParams"),
    Shown("MULTIPLE_SLURMD", "No"),
    Shown("NEXT_JOB_ID", "Unknown"),
    Shown("NodeFeaturesPlugins"),
    Shown("OverTimeLimit", "0", "min"),
    Shown("PluginDir"),
    Shown("PlugStackConfig"),
    Shown("PowerParameters"),
    Shown("PowerPlugin", ""),
    Shown("PreemptMode", "OFF"),
    Shown("PreemptType", "preempt/none"),
    Shown("PreemptExemptTime", "00:00:00"),
    Shown("PrEpParameters"),
    Shown("PrEpPlugins", "prep/script"),
    Shown("PriorityParameters"),
    Shown("PrioritySiteFactorParameters"),
    Shown("PrioritySiteFactorPlugin"),
    Shown("PriorityDecayHalfLife", "7-00:00:00"),
    Shown("PriorityCalcPeriod", "00:05:00"),
    Shown("PriorityFavorSmall", "No"),
    Shown("PriorityFlags", ""),
    Shown("PriorityMaxAge", "7-00:00:00"),
    Shown("PriorityUsageResetPeriod", "NONE"),
    Shown("PriorityType", "priority/basic"),
    Shown("PriorityWeightAge", "0"),
    Shown("PriorityWeightAssoc", "0"),
    Shown("PriorityWeightFairShare", "0"),
    Shown("PriorityWeightJobSize", "0"),
    Shown("PriorityWeightPartition", "0"),
    Shown("PriorityWeightQOS", "0"),
    Shown("PriorityWeightTRES"),
    Shown("PrivateData", "none"),
    Shown("ProctrackType", "proctrack/cgroup"),
    Shown("Prolog"),
    Shown("PrologEpilogTimeout", "65534"),
    Shown("PrologSlurmctld"),
    Shown("PrologFlags"),
    Shown("PropagatePrioProcess", "0"),
    Shown("PropagateResourceLimits", "ALL"),
    Shown("PropagateResourceLimitsExcept"),
    Shown("RebootProgram"),
    Shown("ReconfigFlags"),
    Shown("RequeueExit"),
    Shown("RequeueExitHold"),
    Shown("ResumeFailProgram"),
    Shown("ResumeProgram"),
    Shown("ResumeRate", "300", "nodes/min"),
    Shown("ResumeTimeout", "60", "sec"),
    Shown("ResvEpilog"),
    Shown("ResvOverRun", "0", "min"),
    Shown("ResvProlog"),
    Shown("ReturnToService", "0"),
    Shown("RoutePlugin", "route/default"),
    Shown("SchedulerParameters"),
    Shown("SchedulerTimeSlice", "30", "sec"),
    Shown("SchedulerType", "sched/backfill"),
    Shown("ScronParameters"),
    Shown("SelectType", "select/cons_tres"),
    Shown("SelectTypeParameters", "CR_CORE_MEMORY"),
    Shown("SlurmUser", "root(0)"),
    Shown("SlurmctldAddr"),
    Shown("SlurmctldDebug", "info"),
    Shown("SlurmctldHost", ""),
    Shown("SlurmctldLogFile"),
    Shown("SlurmctldPort", "6817"),
    Shown("SlurmctldSyslogDebug"),
    Shown("SlurmctldPrimaryOffProg"),
    Shown("SlurmctldPrimaryOnProg"),
    Shown("SlurmctldTimeout", "120", "sec"),
    Shown("SlurmctldParameters"),
    Shown("SlurmdDebug", "info"),
    Shown("SlurmdLogFile"),
    Shown("SlurmdParameters"),
    Shown("SlurmdPidFile", "/var/run/slurmd.pid"),
    Shown("SlurmdPort", "6818"),
    Shown("SlurmdSpoolDir", "/var/spool/slurmd"),
    Shown("SlurmdSyslogDebug"),
    Shown("SlurmdTimeout", "300", "sec"),
    Shown("SlurmdUser", "root(0)"),
    Shown("SlurmSchedLogFile"),
    Shown("SlurmSchedLogLevel", "0"),
    Shown("SlurmctldPidFile", "/var/run/slurmctld.pid"),
    Shown("SlurmctldPlugstack"),
    Shown("SLURM_CONF", "/etc/slurm/slurm.conf"),
    Shown("SLURM_VERSION", "Unknown"),
    Shown("SrunEpilog"),
    Shown("SrunPortRange", "0-0"),
    Shown("SrunProlog"),
    Shown("StateSaveLocation", "/var/spool"),
    Shown("SuspendExcNodes"),
    Shown("SuspendExcParts"),
    Shown("SuspendProgram"),
    Shown("SuspendRate", "60", "nodes/min"),
    Shown("SuspendTime", "INFINITE"),
    Shown("SuspendTimeout", "30", "sec"),
    Shown("SwitchParameters"),
    Shown("SwitchType", "switch/none"),
    Shown("TaskEpilog"),
    Shown("TaskPlugin", "task/none"),
    Shown("TaskPluginParam", "(null type)"),
    Shown("TaskProlog"),
    Shown("TCPTimeout", "2", "sec"),
    Shown("TmpFS", "/tmp"),
    Shown("TopologyParam"),
    Shown("TopologyPlugin", "topology/default"),
    Shown("TrackWCKey", "No"),
    Shown("TreeWidth", "50"),
    Shown("UsePam", "No"),
    Shown("UnkillableStepProgram"),
    Shown("UnkillableStepTimeout", "60", "sec"),
    Shown("VSizeFactor", "0", "percent"),
    Shown("WaitTime", "0", "sec"),
    Shown("X11Parameters"),
)
"""In Slurm's order."""

_BOOLEANS = frozenset({row.name for row in ROWS if row.value in ("Yes", "No")})

_DURATIONS = frozenset(
    {"PriorityCalcPeriod", "PriorityDecayHalfLife", "PriorityMaxAge", "PreemptExemptTime"}
)
"""Minutes as they are written, a length of time as they are shown."""

_UPPER = frozenset({"SelectTypeParameters", "PreemptMode", "EnforcePartLimits"})

_BASE_TRES = "cpu,mem,energy,node,billing,fs/disk,vmem,pages"


def show_config(
    settings: ClusterSettings,
    parameters: Sequence[SlurmParameter],
    facts: Mapping[str, str],
    *,
    now: str,
) -> str:
    """Return the configuration, one parameter a line.

    `facts` is what the cluster knows by itself: NEXT_JOB_ID, BOOT_TIME and the like.
    """
    given = {each.name: each.value for each in parameters}
    known = dict(facts) | given | _of_settings(settings)
    lines = [f"Configuration data as of {now}"]
    lines += (f"{name:<23} = {value}" for name, value in _rows(settings, known))
    return "\n".join(lines) + "\n"


def _of_settings(settings: ClusterSettings) -> dict[str, str]:
    """Return what has a field of its own."""
    found = {
        "ClusterName": settings.name,
        "FirstJobId": str(settings.first_job_id),
        "KillWait": str(settings.kill_wait_s),
        "MaxArraySize": str(settings.array_size_max),
        "MaxJobCount": str(settings.job_count_max),
        "MinJobAge": str(settings.min_job_age_s),
        "SlurmdTimeout": str(settings.slurmd_timeout_s),
        "SLURM_VERSION": VERSION.partition(" ")[2],
    }
    for name, value in (
        ("DefMemPerCPU", settings.memory_per_cpu_mib),
        ("DefMemPerNode", settings.memory_per_node_mib),
        ("MaxMemPerCPU", settings.memory_per_cpu_mib_max),
        ("MaxMemPerNode", settings.memory_per_node_mib_max),
    ):
        if value is not None:
            found[name] = str(value)
    return found


def _rows(settings: ClusterSettings, known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for row in ROWS:
        name = row.name
        if name == "SlurmctldHost":
            for number, host in enumerate(settings.controllers):
                address = f"({host.address})" if host.address != host.name else ""
                yield f"SlurmctldHost[{number}]", f"{host.name}{address}"
            continue
        # Of memory for a node and for a CPU one is shown: the one that is set.
        per_cpu = name.replace("PerNode", "PerCPU")
        if name.endswith("MemPerNode") and per_cpu in known:
            name = per_cpu
        value = _value(name, known[name]) if known.get(name) else row.value
        yield name, f"{value} {row.unit}" if row.unit and value.lstrip("-").isdigit() else value


def _value(name: str, written: str) -> str:
    """Return a value as Slurm shows it."""
    if name in _BOOLEANS:
        return "Yes" if written.lower() in ("yes", "y", "1", "true", "up") else "No"
    if name in _DURATIONS:
        try:
            return format_long_duration(parse_time_limit(written))
        except ValueError:
            return written
    if name in _UPPER:
        return written.upper()
    if name == "AccountingStoreFlags":
        return ",".join(sorted(written.split(",")))
    if name == "AccountingStorageTRES":
        return ",".join([_BASE_TRES, *sorted(written.split(","))])
    return written
