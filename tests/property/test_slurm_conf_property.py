"""Whatever names and shapes a site has: what is written is what is read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spur.slurm.configfile import check_slurm_config
from spur.values.config import ConfigFile
from spur.values.hostlist import format_hostlist, parse_hostlist

NAMES = st.builds(
    lambda head, number, width, tail: f"{head}{number:0{width}d}{tail}",
    st.sampled_from(["n", "r1n", "gpu-", "a.b"]),
    st.integers(0, 30),
    st.integers(1, 4),
    st.sampled_from(["", "x", "-ib"]),
)
NODES = st.lists(NAMES, min_size=1, max_size=20, unique=True)
HEAD = "ClusterName=hall\nSlurmctldHost=ctl\nGresTypes=gpu\n"


@given(NODES)
def test_a_host_list_that_was_written_is_read_again(names: list[str]) -> None:
    """Any nodes: shortened to a list, and the list read, they are the same nodes."""
    text = format_hostlist(names)
    assert set(parse_hostlist(text)) == set(names)
    assert format_hostlist(parse_hostlist(text)) == text


@given(NODES, st.data())
def test_nodes_that_are_written_on_lines_are_read_again(
    names: list[str], data: st.DataObject
) -> None:
    """Nodes are spread over lines with any shapes; all are there, once, as they were written."""
    cut = data.draw(st.integers(1, len(names)))
    lines, wanted = [], {}
    for group in (names[:cut], names[cut:]):
        if not group:
            continue
        sockets, cores, threads = (data.draw(st.integers(1, 4)) for _ in range(3))
        gpus = data.draw(st.integers(0, 8))
        lines.append(
            f"NodeName={format_hostlist(group)} Sockets={sockets} CoresPerSocket={cores} "
            f"ThreadsPerCore={threads}" + (f" Gres=gpu:x:{gpus}" if gpus else "")
        )
        wanted.update(dict.fromkeys(group, (sockets * cores * threads, gpus)))
    text = HEAD + " \\\n ".join("\n".join(lines).split(" ")) + "\nPartitionName=p Nodes=ALL\n"
    checked = check_slurm_config([ConfigFile("slurm.conf", text)])
    assert checked.errors == ()
    assert checked.config is not None
    found = {
        name: (block.cpus, block.gpus)
        for block in checked.config.nodes
        for name in parse_hostlist(block.names)
    }
    assert found == wanted
    assert set(parse_hostlist(checked.config.partitions[0].nodes)) == set(names)


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    """Any text at all: it is read or refused, and each error names a line of it."""
    checked = check_slurm_config([ConfigFile("slurm.conf", text), ConfigFile("gres.conf", text)])
    lines = text.count("\n") + 1
    for error in checked.errors:
        name, line, _ = error.split(":", 2)
        assert name in ("slurm.conf", "gres.conf")
        assert 1 <= int(line) <= lines
