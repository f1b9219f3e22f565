"""Write docs/reference from the registries, so that a page cannot say what the code does not.

`reference.py` rewrites the pages; `reference.py --check` changes nothing and fails if one differs.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import msgspec

from spur.controller import settings as controller
from spur.events.declare import EVENTS
from spur.server import agentsettings as agent
from spur.slurm.configfile import PARAMETERS
from spur.slurm.options import OPTIONS, Takes
from spur.slurm.surface import counts_of, shown_by
from spur.slurm.variables import VARIABLES
from spur.values.errors import ERROR_CODES
from spur_cli.registry import COMMANDS
from spur_cloud.settings import SETTINGS

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "reference"
EXAMPLES: dict[str, dict[str, str]] = tomllib.loads(
    (PAGES / "examples.toml").read_text(encoding="utf-8")
)
NOTE = "<!-- Made by ops/gen; do not edit. -->"


def main() -> int:
    """Write the pages, or compare them when asked to check."""
    is_check = "--check" in sys.argv[1:]
    stale = []
    for name, (title, intro, body) in pages().items():
        text = f"{NOTE}\n\n# {title}\n\n{intro}\n\n" + "".join(f"{line}\n" for line in body())
        file = PAGES / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            stale.append(name)
            if not is_check:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
    made = {file.relative_to(PAGES).as_posix() for file in PAGES.rglob("*.md")}
    stray = sorted(made - set(pages()))
    for name in stray:
        print(f"gen: docs/reference/{name} is made by nothing; remove it", file=sys.stderr)
    if is_check:
        for name in stale:
            print(f"gen: docs/reference/{name} is out of date; run ops/gen", file=sys.stderr)
        return 1 if stale or stray else 0
    print(f"gen: {len(stale)} of {len(pages())} pages changed")
    return 1 if stray else 0


def pages() -> dict[str, tuple[str, str, Callable[[], Iterator[str]]]]:
    """Return title, introduction and body of each page, by file name."""
    return {
        "commands.md": (
            "Commands",
            "What `spur` understands. `spur COMMAND --help` shows a command's options.",
            commands,
        ),
        "errors.md": (
            "Error codes",
            "A code names an error for ever; the text beside it may change.",
            errors,
        ),
        "events.md": (
            "Events",
            "What the log can hold, with the fields of the current version in stored order.",
            events,
        ),
        "limits.md": (
            "Limits",
            "What is refused, and by which name. These are part of the product, not settings.",
            limits,
        ),
        "slurm-conf.md": (
            "Parameters of Slurm's files",
            "What becomes of each parameter of slurm.conf, gres.conf and topology.conf. "
            "`spur conf check FILE` says it of a file.",
            slurm_parameters,
        ),
        "settings.md": (
            "Settings",
            "Read at start: a change needs a restart. Unknown names and bad values are refused.",
            settings,
        ),
        **{f"commands/{name}.md": slurm_page(name) for name in OPTIONS},
    }


def slurm_page(command: str) -> tuple[str, str, Callable[[], Iterator[str]]]:
    """Return title, introduction and body of the page of one of Slurm's commands."""
    summary = next((row.summary for row in COMMANDS if row.alias == command), "")
    intro = f"{summary[:1].upper()}{summary[1:]}." if summary else "The command is not there yet."
    return command, intro, partial(slurm_command, command)


# -- the pages ---------------------------------------------------------------------------------


def commands() -> Iterator[str]:
    """Yield the table of the CLI's commands."""
    yield "| command | summary | Slurm's name |"
    yield "|---|---|---|"
    for row in COMMANDS:
        alias = f"[{row.alias}](commands/{row.alias}.md)" if row.alias in OPTIONS else "-"
        yield f"| `spur {' '.join(row.words)}` | {row.summary} | {alias} |"
    yield ""
    yield "How many options of Slurm's commands there are, and what becomes of them; `spur surface`"
    yield "shows it with every name."
    yield ""
    yield "| command | options | honoured | accepted | refused |"
    yield "|---|---|---|---|---|"
    there = {row.alias for row in COMMANDS}
    for name in OPTIONS:
        counts = counts_of(name)
        shown = f"{counts.honoured} | {counts.accepted} | {counts.refused}"
        if name not in there:
            shown = "not there yet | - | -"
        yield f"| [{name}](commands/{name}.md) | {counts.options} | {shown} |"


def slurm_command(command: str) -> Iterator[str]:
    """Yield the examples, options, columns and variables of one of Slurm's commands."""
    if examples := EXAMPLES.get(command):
        yield "## Examples"
        yield ""
        yield "```sh"
        for line, meaning in examples.items():
            yield f"# {meaning}"
            yield line
        yield "```"
        yield ""
    yield "## Options"
    yield ""
    yield "An accepted option is read and has no effect; a refused one ends the command, so that"
    yield "nobody waits for what will not happen. A word may be cut short while it is unmistakable."
    yield ""
    yield "| option | short | variables | what becomes of it |"
    yield "|---|---|---|---|"
    values = {Takes.NOTHING: "", Takes.VALUE: "=VALUE"}
    for row in OPTIONS[command]:
        names = ", ".join(
            f"`--{name}{values.get(row.takes, '[=VALUE]')}`" for name in (row.long, *row.aliases)
        )
        short = f"`-{row.short}`" if row.short else "-"
        variables = ", ".join(f"`{name}`" for name in row.environment) or "-"
        effect = f"{row.effect}: {row.why}" if row.why else row.effect
        yield f"| {names if row.long else '-'} | {short} | {variables} | {effect} |"
    if columns := shown_by(command):
        yield ""
        yield "## Columns"
        yield ""
        yield "| name | letter | heading |"
        yield "|---|---|---|"
        for column in columns:
            letter = f"`%{column.letter}`" if column.letter else "-"
            name = f"`{column.name}`" if column.name else "-"
            yield f"| {name} | {letter} | {column.heading or '-'} |"
    yield ""
    yield "## Variables that stand for no option"
    yield ""
    yield "| variable | what becomes of it |"
    yield "|---|---|"
    for variable in VARIABLES:
        if command in variable.commands:
            yield f"| `{variable.name}` | {variable.effect}: {variable.what} |"


def errors() -> Iterator[str]:
    """Yield the table of error codes in declared order."""
    yield "| code | meaning | whose fault | trying again helps | exit status |"
    yield "|---|---|---|---|---|"
    for row in ERROR_CODES.values():
        yield f"| `{row.code}` | {row.summary} | {row.fault} | {row.retry} | {row.exit_status} |"


def events() -> Iterator[str]:
    """Yield a section for each event: its doc and its fields."""
    import_all("spur.events")
    for name in sorted(EVENTS):
        row = EVENTS[name]
        ignorable = ", ignorable" if row.flags else ""
        yield f"## {name}"
        yield ""
        yield f"Version {row.version}{ignorable}. {flat(row.cls.__doc__)}"
        yield ""
        fields = list(fields_of(row.cls))
        if fields:
            yield "| field | type | meaning |"
            yield "|---|---|---|"
        for field, kind, doc in fields:
            yield f"| `{field}` | `{kind.replace('|', chr(92) + '|')}` | {doc} |"
        yield ""


def limits() -> Iterator[str]:
    """Yield the table of named limits of every room."""
    yield "| limit | value | meaning | where |"
    yield "|---|---|---|---|"
    for file in sorted((ROOT / "spur").rglob("*.py")):
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for constant, doc in documented(ast.parse(file.read_text(encoding="utf-8")).body):
            is_limit = "_MAX" in constant and constant.isupper() and constant[0] != "_"
            if is_limit and not name.startswith("spur.testing"):
                value = getattr(importlib.import_module(name), constant)
                yield f"| `{constant}` | {number(value)} | {doc} | `{name}` |"


def settings() -> Iterator[str]:
    """Yield the tables of settings, one for each program."""
    yield from daemon_settings("spurctld", controller, controller.Settings)
    yield from daemon_settings("spurd", agent, agent.Settings)
    yield "## Spur-Cloud"
    yield ""
    yield "In the environment."
    yield ""
    yield "| variable | default | unit | meaning |"
    yield "|---|---|---|---|"
    for row in SETTINGS:
        default = "must be set" if row.default is None else f"`{row.default}`"
        yield f"| `{row.variable}` | {default} | {row.unit} | {row.doc} |"


def daemon_settings(program: str, module: ModuleType, cls: type[msgspec.Struct]) -> Iterator[str]:
    """Yield the table of a daemon's settings file."""
    yield f"## {program}"
    yield ""
    yield f"In `{module.SETTINGS_FILE}`, in its directory."
    yield ""
    yield "| key | default | from | to | meaning |"
    yield "|---|---|---|---|---|"
    defaults = {field.name: field.default for field in msgspec.structs.fields(cls)}
    for name, _, doc in fields_of(cls):
        default = defaults[name]
        shown = "must be set" if default is msgspec.NODEFAULT else f"`{default}`"
        least, most = (number(end) for end in module.RANGES.get(name, ("-", "-")))
        yield f"| `{name}` | {shown} | {least} | {most} | {doc} |"
    yield ""


def slurm_parameters() -> Iterator[str]:
    """Yield a table of parameters for each kind of line."""
    for section, parameters in PARAMETERS.items():
        yield f"## {section}"
        yield ""
        yield "| parameter | takes | verdict | meaning |"
        yield "|---|---|---|---|"
        for row in parameters:
            verdict = str(row.verdict) + (f": {', '.join(row.values)}" if row.values else "")
            yield f"| `{row.name}` | {flat(row.grammar.takes)} | {verdict} | {row.doc} |"
        yield ""


# -- reading sources ---------------------------------------------------------------------------


def import_all(package: str) -> None:
    """Import every module of a package, so that its registry is full."""
    folder = importlib.import_module(package)
    for module in pkgutil.iter_modules(folder.__path__, f"{package}."):
        importlib.import_module(module.name)


def fields_of(cls: type) -> Iterator[tuple[str, str, str]]:
    """Yield name, type and doc of the fields that a struct declares itself."""
    tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(cls)))
    (node,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    docs = dict(documented(node.body))
    for field in node.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            yield field.target.id, ast.unparse(field.annotation), docs.get(field.target.id, "")


def documented(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Yield assigned names with the docstring under them, if there is one."""
    for node, after in zip(body, [*body[1:], None], strict=True):
        targets: list[ast.expr] = []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        elif isinstance(node, ast.Assign):
            targets = node.targets
        doc = ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            doc = flat(str(after.value.value))
        for target in targets:
            if isinstance(target, ast.Name):
                yield target.id, doc


def flat(text: str | None) -> str:
    """Return a docstring on one line, safe inside a table."""
    return " ".join((text or "").split()).replace("|", "\\|")


def number(value: object) -> str:
    """Return a number in groups of three, or what else it is."""
    return f"{value:,}".replace(",", " ") if isinstance(value, int) else str(value)


if __name__ == "__main__":
    sys.exit(main())
