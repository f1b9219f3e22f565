"""What is told of a script before it moves: the line, what it comes to, what to write instead."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spur.migrate.calls import calls_in, unset_variables
from spur.migrate.report import Note, Severity, Word
from spur.migrate.scripts import check_script
from spur.migrate.tomlfile import to_toml
from spur.slurm.configfile import parse_slurm_config
from spur.slurm.timespec import Moment
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE, parse_config
from spur_cli.main import main

SITE = """\
ClusterName=demo
SlurmctldHost=ctl(10.0.0.1)
KillWait=2
JobSubmitPlugins=lua
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu,shard
NodeName=c[01-04] CPUs=16 RealMemory=64000 Feature=intel,rack1
NodeName=g[01-02] Sockets=2 CoresPerSocket=8 ThreadsPerCore=2 RealMemory=512000 Gres=gpu:a100:4
NodeName=g[03-04] CPUs=64 RealMemory=512000 Gres=gpu:v100:2,shard:8 Weight=5
PartitionName=cpu Nodes=c[01-04] Default=YES MaxTime=2-00:00:00
PartitionName=gpu Nodes=g[01-04] MaxTime=UNLIMITED PriorityTier=3 AllowGroups=ml
"""


class Noon:
    """A calendar of a day without an end."""

    def now(self) -> int:
        return 1_796_040_000

    def moment(self, seconds: int) -> Moment:
        return Moment(2026, 11, 30, 12, 0, 0)

    def seconds(self, moment: Moment) -> int:
        return 1_796_040_000


def notes_of(text: str) -> list[Note]:
    return list(check_script("job.sh", text.encode(), calendar=Noon()).notes)


def test_the_line_and_what_to_write_instead_are_named() -> None:
    """Somebody mistyped an option in one of four hundred scripts."""
    [note] = notes_of("#!/bin/bash\n#SBATCH -n 2\n#SBATCH --tme=3\ntrue\n")
    assert (note.line, note.severity, note.instead) == (3, Severity.FAILS, "--time")


def test_an_option_without_effect_is_a_difference() -> None:
    """A script works and something it asks for does not happen."""
    report = check_script("a", b"#!/bin/sh\n#SBATCH --profile=all\ntrue\n", calendar=Noon())
    assert report.verdict is Word.DIFFERS
    assert report.notes[0].what == "--profile has no effect: no profiles are taken"


def test_options_of_calls_in_the_body_are_judged() -> None:
    """A step asks for what it will not get; values of variables are let be."""
    body = '#!/bin/bash\nsrun -n "$N" --nosuch ./a | tee log\nx=$(squeue -h -o %i -j $J)\n'
    [note] = notes_of(body)
    assert (note.line, note.severity) == (2, Severity.FAILS)
    assert "--nosuch" in note.what


def test_calls_are_found_where_a_shell_finds_them() -> None:
    """A script calls Slurm behind pipes, in loops and substitutions, and speaks of it in texts."""
    body = (
        "#!/bin/bash\nfor i in 1 2; do srun -N1 \\\n  ./a & done; wait\n"
        "id=$(sbatch --parsable next.sh)\necho srun; cat <<EOF\nscancel 3\nEOF\n"
        "if squeue --me; then time scontrol show job 1; fi\n# scancel 4\nA=1 /usr/bin/sinfo -h\n"
    )
    found = [(call.line, call.command) for call in calls_in(body)]
    assert found == [
        (2, "srun"),
        (4, "sbatch"),
        (8, "squeue"),
        (8, "scontrol"),
        (9 + 1, "sinfo"),
    ]


def test_variables_that_nobody_sets_are_named() -> None:
    """A script reads a variable of a plug-in; one that it sets itself is its own."""
    text = "echo $SLURM_JOB_ID $SLURM_SPANK_FOO\nSLURM_MINE=1; echo $SLURM_MINE\n"
    assert unset_variables(text) == {"SLURM_SPANK_FOO": 1}


@pytest.mark.parametrize(
    ("content", "instead"),
    [
        (b"#!/bin/sh\r\ntrue\r\n", "sed -i 's/\\r$//' FILE"),
        (b"true\n", "#!/bin/bash as its first line"),
        (b"", "a script with a command"),
    ],
)
def test_what_is_no_script_says_what_to_do(content: bytes, instead: str) -> None:
    """A file came from another system, or from an editor that adds what nobody sees."""
    [note] = check_script("a", content, calendar=Noon()).notes
    assert (note.severity, note.instead) == (Severity.FAILS, instead)


def test_a_configuration_means_the_same_as_spur_toml() -> None:
    """A site drops slurm.conf and goes on with what was made of it."""
    text = to_toml((ConfigFile("slurm.conf", SITE),))
    before = parse_slurm_config((ConfigFile("slurm.conf", SITE),))
    after = parse_config(ConfigFile(CONFIG_FILE, text))
    assert after.partitions == before.partitions
    assert [node.names for node in after.nodes] == [node.names for node in before.nodes]
    for one, other in zip(after.nodes, before.nodes, strict=True):
        for name in ("cpus", "sockets", "threads_per_core", "memory_mib", "gpus", "weight"):
            assert getattr(one, name) == getattr(other, name), name
        assert [(p.name, p.kind, p.count) for p in one.gres if p.count] == [
            (p.name, p.kind, p.count) for p in other.gres if p.count
        ]
    assert after.settings.kill_wait_s == 2
    assert "# left out: JobSubmitPlugins=lua (slurm.conf:4): no script looks" in text
    assert "# changed: addresses of controllers" in text


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a directory with scripts, and the site's files beside it."""
    (tmp_path / "slurm.conf").write_text(SITE)
    (tmp_path / "cgroup.conf").write_text("ConstrainCores=yes\n")
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "good.sh").write_text("#!/bin/bash\n#SBATCH -p gpu -G a100:1\ntrue\n")
    (scripts / "notes.txt").write_text("no script\n")
    return tmp_path


def check(site: Path, *options: str) -> int:
    words = ["spur", "migrate", "check", str(site / "scripts")]
    return main([*words, "--conf", str(site / "slurm.conf"), *options])


def test_exit_codes_are_for_machines(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pipeline runs the check: all works, something differs, something fails."""
    assert check(site) == 0
    (site / "scripts" / "other.sh").write_text("#!/bin/sh\n#SBATCH --profile=all\ntrue\n")
    assert check(site) == 3
    (site / "scripts" / "bad.sh").write_text("#!/bin/sh\n#SBATCH -p nosuch\ntrue\n")
    capsys.readouterr()
    assert check(site, "--json") == 1
    told = json.loads(capsys.readouterr().out)
    verdicts = {row["name"]: row["verdict"] for row in told["scripts"]}
    assert verdicts == {
        "good.sh": "works",
        "other.sh": "works with a difference",
        "bad.sh": "fails",
    }
    [bad] = [row for row in told["scripts"] if row["name"] == "bad.sh"]
    assert bad["notes"][0]["line"] == 2
    by_name = {row["name"]: row["verdict"] for row in told["parameters"]}
    assert by_name["JobSubmitPlugins"] == "missing"
    assert by_name["KillWait"] == "honoured"
    assert by_name["ConstrainCores"] == "missing"


def test_the_page_shows_what_users_wrote_as_text(site: Path) -> None:
    """A name of a script is no markup of the page that a manager opens."""
    (site / "scripts" / "<b>.sh").write_text("#!/bin/sh\n#SBATCH --nosuch='<i>'\n")
    page = site / "report.html"
    assert check(site, "--html", str(page)) == 1
    text = page.read_text()
    assert "&lt;b&gt;.sh" in text
    assert "<b>.sh" not in text
    assert "<i>" not in text


def test_a_configuration_is_written_out(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An administrator turns slurm.conf into spur.toml."""
    assert main(["spur", "migrate", "conf", str(site / "slurm.conf")]) == 0
    assert capsys.readouterr().out.startswith("# Made from slurm.conf")


def test_what_is_no_configuration_is_told(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The slurm.conf that is handed in has an error."""
    (site / "slurm.conf").write_text(SITE + "Nosuch=1\n")
    assert main(["spur", "migrate", "conf", str(site / "slurm.conf")]) == 1
    assert check(site) == 1
    assert "Nosuch" in capsys.readouterr().err
