"""slurm.conf as spur.toml: what has a key, and a comment on everything that has none.

Source: `values.configkeys` has the keys; `slurm.configfile` reads the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spur.migrate.parameters import check_parameters
from spur.slurm.configfile import check_slurm_config
from spur.values.config import Config, ConfigFile, NodeBlock
from spur.values.configfile import ConfigErrors
from spur.values.configkeys import CLUSTER_KEYS, NODE_KEYS, PARTITION_KEYS, REQUIRED, Keys

__all__ = ["to_toml"]


def to_toml(files: Sequence[ConfigFile]) -> str:
    """Return the text of a spur.toml. Raises: ConfigErrors when the files are wrong."""
    checked = check_slurm_config(files)
    if checked.config is None:
        raise ConfigErrors(checked.errors)
    return "".join(f"{line}\n" for line in _lines(checked.config, files))


def _lines(config: Config, files: Sequence[ConfigFile]) -> Iterator[str]:
    yield f"# Made from {', '.join(file.name for file in files)}. What Spur has no key for stands"
    yield "# in comments, with what that means. Sizes are in MiB, times in seconds."
    yield ""
    yield "[cluster]"
    settings = {key: getattr(config.settings, key) for key in CLUSTER_KEYS}
    settings["controllers"] = [host.name for host in config.settings.controllers]
    yield from _pairs(CLUSTER_KEYS, settings)
    if any(host.address != host.name for host in config.settings.controllers):
        yield "# changed: addresses of controllers stand in spur.address, one a line"
    yield from _left_out(files, "")
    for grant in config.roles:
        yield ""
        yield "[[roles]]"
        yield f"uid = {grant.uid}"
        yield f"host = {_text(grant.host)}"
        yield f"role = {_text(grant.role)}"
    for block in config.nodes:
        yield ""
        yield "[[nodes]]"
        yield from _node(block)
    for partition in config.partitions:
        yield ""
        yield "[[partitions]]"
        values = {key: getattr(partition, key) for key in PARTITION_KEYS}
        yield from _pairs(PARTITION_KEYS, values)
        for other in partition.others:
            yield f"# left out: {other.name}={other.value}: no key, and nothing follows from it"
    for unit in config.topology:
        yield ""
        members = unit.nodes or ",".join(unit.switches)
        yield f"# left out: {unit.kind} {unit.name} of {members}: keep it in topology.conf"


def _node(block: NodeBlock) -> Iterator[str]:
    values: dict[str, Any] = {
        key: getattr(block, key) for key in NODE_KEYS if key not in ("gpus", "gres")
    }
    pools = [pool for pool in block.gres if pool.count]
    if any(pool.name != "gpu" or len(pools) > 1 for pool in pools):
        values["gpus"], values["gres"] = (
            "",
            [":".join(filter(None, (pool.name, pool.kind, str(pool.count)))) for pool in pools],
        )
    else:
        kind = f"{block.gpu_kind}:" if block.gpu_kind else ""
        values["gpus"], values["gres"] = f"{kind}{block.gpus}" if block.gpus else "", []
    yield from _pairs(NODE_KEYS, values)
    for pool in pools:
        if pool.files or pool.cores or pool.flags:
            written = ", ".join(filter(None, (pool.files, pool.cores, *pool.flags)))
            yield f"# changed: where {pool.name} {pool.kind} lies ({written}) is found by the node"
    for other in block.others:
        yield f"# left out: {other.name}={other.value}: no key, and nothing follows from it"


def _pairs(keys: Keys, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys that say something else than their default."""
    for key, (_, default) in keys.items():
        value = values[key]
        plain = list(value) if isinstance(value, tuple) else value
        usual = list(default) if isinstance(default, tuple) else default
        if value is None or plain in ("", []) or (default is not REQUIRED and plain == usual):
            continue
        yield f"{key} = {_value(plain)}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return _text(value)


def _text(value: str) -> str:
    plain = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'


def _left_out(files: Sequence[ConfigFile], of: str) -> Iterator[str]:
    """Yield a comment for each parameter of the cluster that has no key."""
    found, _ = check_parameters(files, ())
    for each in found:
        if each.of == of and each.verdict != "honoured":
            why = each.note or "nothing follows from it so far"
            yield f"# left out: {each.name}={each.value} ({each.file}:{each.line}): {why}"
