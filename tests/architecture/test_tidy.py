"""Rules about the code that no linter knows, and that each of them catches what it is meant to.

`findings(tree)` walks the product's and the tests' sources and returns one line for each breach;
the planted breaches below run it on a spoiled copy.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("spur", "cli/spur_cli", "cloud/spur_cloud", "migrations/spur_migrations")
TEXTS = ("*.md", "*.py", "*.toml", "*.lock", "ops/*", ".ci/*", "*.txt")
PURE_ROOMS = ("values", "wire", "slurm", "events", "projections", "commands", "scheduling")

FILE_LINES_MAX = 800
FUNCTION_LINES_MAX = 60

IMPURE_CALLS = ("hash", "id", "open", "input", "print", "eval", "exec", "__import__")
"""Builtins that a pure room never calls: IO, or a result that differs from process to process."""

FOREIGN = re.compile(
    r"(?<![\w.}-])/(?:work/|root/|home/\w+/|Users/)[\w.]"
    r"|pypi\.org|pythonhosted\.org|debian\.org/debian|ubuntu\.com/ubuntu|registry\.npmjs"
    r"|--(?:extra-)?index-url|--find-links"
    r"|(?<![\w-])\.\./shared|(?<![\w/-])shared/(?:DESIGN|LOG|style|reference|golden|oracle|compat)"
    r"|\b(?:issue|session|helper) (?:#|no\. ?|number )?\d+\b|source: issue",
    re.IGNORECASE,
)
"""Paths of one machine, addresses of package registries, papers outside of the project."""


class Source(NamedTuple):
    """One parsed Python file."""

    name: str
    """Its path in the tree, with slashes."""
    text: str
    tree: ast.Module


def sources(tree: Path) -> list[Source]:
    """Return every Python file of the product, the tests and the scripts, by name."""
    files: list[Path] = []
    for folder in (*PACKAGES, "tests", "ops"):
        files.extend((tree / folder).rglob("*.py"))
    found = []
    for file in sorted(files):
        text = file.read_text(encoding="utf-8")
        name = file.relative_to(tree).as_posix()
        found.append(Source(name, text, ast.parse(text, filename=name)))
    return found


def is_product(source: Source) -> bool:
    """Return whether the file is shipped, as opposed to tests and scripts."""
    return source.name.startswith(PACKAGES)


# -- the rules ---------------------------------------------------------------------------------


def long_files(found: list[Source]) -> Iterator[str]:
    """Yield files that are too long to be read."""
    for source in found:
        count = source.text.count("\n")
        if count > FILE_LINES_MAX:
            yield f"{source.name}: {count} lines; at most {FILE_LINES_MAX}, aim for 300"


def long_functions(found: list[Source]) -> Iterator[str]:
    """Yield functions that do more than one thing, going by their length."""
    for source in found:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                count = (node.end_lineno or node.lineno) - node.lineno + 1
                if count > FUNCTION_LINES_MAX:
                    yield (
                        f"{source.name}:{node.lineno}: {node.name} has {count} lines; "
                        f"at most {FUNCTION_LINES_MAX}"
                    )


def leftover_marks(found: list[Source]) -> Iterator[str]:
    """Yield marks of unfinished work: none stays without the condition of its removal."""
    unfinished = "FIX" + "ME"
    later = "TO" + "DO"
    for source in found:
        if unfinished not in source.text and later not in source.text:
            continue
        for number, line in enumerate(source.text.splitlines(), 1):
            if re.search(rf"\b{unfinished}\b", line):
                yield f"{source.name}:{number}: {unfinished} does not reach main"
            if re.search(rf"\b{later}\b(?!\((?:when|once|until|after) [^)]+\))", line):
                yield f"{source.name}:{number}: {later} without its condition, as in (once ...)"


def unreasoned_ignores(found: list[Source]) -> Iterator[str]:
    """Yield exceptions from a checker that give no reason on their line."""
    mark = re.compile(
        r"# (?:type: ignore|no" + r"qa)(?:\[[^\]]*\]|: ?[A-Z0-9, ]+)?(?P<rest>.*)$", re.MULTILINE
    )
    for source in found:
        if not mark.search(source.text):
            continue
        for number, line in enumerate(source.text.splitlines(), 1):
            match = mark.search(line)
            if match and not re.search(r"#\s*\w.{4,}", match["rest"]):
                yield f"{source.name}:{number}: an exception from a check without a reason"


def untold_tests(found: list[Source]) -> Iterator[str]:
    """Yield tests that do not tell the situation they stand for."""
    for source in found:
        if not source.name.startswith("tests/"):
            continue
        for node in ast.walk(source.tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if node.name.startswith("test_") and not ast.get_docstring(node):
                yield f"{source.name}:{node.lineno}: {node.name} has no docstring"


def module_of(name: str) -> str:
    """Return the dotted name that a product file is imported by."""
    for package in PACKAGES:
        if name.startswith(package + "/"):
            name = name[len(package) - len(package.rpartition("/")[2]) :]
    parts = name.removesuffix(".py").split("/")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_names(found: list[Source]) -> set[str]:
    """Return every dotted name that some file imports, or names in a string to be executed."""
    names: set[str] = set()
    for source in found:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module)
                names.update(f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Constant) and is_module_name(node.value):
                names.add(str(node.value))
    return names


def is_module_name(value: object) -> bool:
    """Return whether a constant names a module, as a row that says what to execute does."""
    return isinstance(value, str) and bool(re.fullmatch(r"spur(?:_\w+)?(?:\.\w+)+", value))


def dead_modules(found: list[Source], settings: str) -> Iterator[str]:
    """Yield shipped modules that nothing imports, starts or executes."""
    names = imported_names(found)
    names.update(re.findall(r'= "([\w.]+):\w+"', settings))
    for source in found:
        if not is_product(source) or source.name.endswith(("/__init__.py", "/__main__.py")):
            continue
        module = module_of(source.name)
        is_command = module.startswith("spur_cli.commands.")
        is_migration = "/versions/" in source.name or source.name.endswith("/env.py")
        if module not in names and not is_command and not is_migration:
            yield f"{source.name}: nothing imports {module}"


def silent_rooms(found: list[Source]) -> Iterator[str]:
    """Yield rooms whose `__init__` does not say what they are, may import, begin with and keep."""
    for source in found:
        is_room = source.name.endswith("/__init__.py") and source.name.count("/") == 2
        if not is_product(source) or not is_room:
            continue
        doc = ast.get_docstring(source.tree) or ""
        for heading in ("May import:", "Read first:", "Keeps:"):
            if heading not in doc:
                yield f"{source.name}: its docstring lacks {heading!r}"
        folder = source.name.rpartition("/")[0]
        names = {other.name for other in found}
        listed = re.search(r"Read first:(.*?)(?:\n\n|\Z)", doc, re.DOTALL)
        for file in re.findall(r"`([\w/]+\.py)`", listed[1] if listed else ""):
            if f"{folder}/{file}" not in names:
                yield f"{source.name}: names {file}, which is not there"


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, those under a condition included."""
    for node in body:
        if isinstance(node, ast.If):
            yield from statements([*node.body, *node.orelse])
        else:
            yield node


def unlisted_names(found: list[Source]) -> Iterator[str]:
    """Yield public names missing from `__all__`, and names in it that are not there."""
    for source in found:
        if not is_product(source) or "/versions/" in source.name or source.name.endswith("/env.py"):
            continue
        listed: list[str] | None = None
        defined: set[str] = set()
        public: set[str] = set()
        for node in statements(source.tree.body):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                defined.add(node.name)
                if isinstance(node, ast.ClassDef) or not node.decorator_list:
                    public.add(node.name)  # a decorated function is reached through its registry
            elif isinstance(node, ast.Import | ast.ImportFrom):
                defined.update(alias.asname or alias.name for alias in node.names)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = [name for target in targets for name in ast.walk(target)]
                defined.update(name.id for name in names if isinstance(name, ast.Name))
                if ast.unparse(targets[0]) == "__all__" and node.value is not None:
                    listed = list(ast.literal_eval(node.value))
        public = {name for name in public if not name.startswith("_")}
        if listed is None:
            if public:
                yield f"{source.name}: public names but no __all__"
            continue
        for name in sorted(public - set(listed)):
            yield f"{source.name}: {name} is public but not in __all__"
        for name in sorted(set(listed) - defined):
            yield f"{source.name}: __all__ names {name}, which is not there"


def pure_sources(found: list[Source]) -> list[Source]:
    """Return the files of the pure rooms, and the core of consensus with what it imports there."""
    by_module = {module_of(source.name): source for source in found if is_product(source)}
    core: dict[str, Source] = {}
    waiting = ["spur.consensus.core"]
    while waiting:
        module = waiting.pop()
        if module in by_module and module not in core and module.startswith("spur.consensus."):
            core[module] = by_module[module]
            waiting.extend(imported_names([by_module[module]]))
    rooms = tuple(f"spur/{room}/" for room in PURE_ROOMS)
    return [source for source in found if source.name.startswith(rooms)] + list(core.values())


def impure_calls(found: list[Source]) -> Iterator[str]:
    """Yield what the import contracts cannot see: builtins with IO, and walks in hash order."""
    for source in pure_sources(found):
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                called = node.func.id
                if called in IMPURE_CALLS:
                    yield f"{source.name}:{node.lineno}: a pure room calls {called}()"
                is_walk = called in ("list", "tuple", "iter", "next", "enumerate")
                if is_walk and node.args and is_unordered(node.args[0]):
                    yield f"{source.name}:{node.lineno}: the order of a set is left to hashes"
            if isinstance(node, ast.For | ast.comprehension) and is_unordered(node.iter):
                yield f"{source.name}:{node.iter.lineno}: walks a set; sort it first"


def is_unordered(node: ast.expr) -> bool:
    """Return whether an expression is plainly a set."""
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in ("set", "frozenset")
    return False


def foreign_words(tree: Path) -> Iterator[str]:
    """Yield places that speak of one machine or one registry instead of the project."""
    for file in text_files(tree):
        if file == Path(__file__) or file.name == Path(__file__).name:
            continue
        text = file.read_text(encoding="utf-8")
        lines = text.splitlines() if FOREIGN.search(text) else []
        for number, line in enumerate(lines, 1):
            match = FOREIGN.search(line)
            if match and not (file.parent.name == "ops" and match[0].startswith("--")):
                yield f"{file.relative_to(tree)}:{number}: speaks of {match[0]!r}"


def text_files(tree: Path) -> Iterator[Path]:
    """Yield the files that people read, without what is made by tools."""
    for folder, folders, files in os.walk(tree):
        folders[:] = sorted(
            name
            for name in folders
            if name not in ("__pycache__", "dist", "build", "data", "out")
            and (not name.startswith(".") or name == ".ci")
        )
        for name in sorted(files):
            file = Path(folder, name)
            if any(file.relative_to(tree).match(pattern) for pattern in TEXTS):
                yield file


def loose_scripts(tree: Path) -> Iterator[str]:
    """Yield scripts that cannot be started, or go on after a failure."""
    for folder in ("ops", ".ci"):
        for file in sorted((tree / folder).glob("*")):
            if file.suffix or not file.is_file():
                continue
            text = file.read_text(encoding="utf-8")
            if not os.access(file, os.X_OK):
                yield f"{folder}/{file.name}: is not executable"
            if text.startswith("#!/usr/bin/env bash") and "set -euo pipefail" not in text:
                yield f"{folder}/{file.name}: lacks set -euo pipefail"
            if not re.match(r"#!.*\n# [A-Z]", text):
                yield f"{folder}/{file.name}: does not say in its head what it does"


def findings(tree: Path) -> list[str]:
    """Return one line for each breach of a rule in a tree of the sources."""
    found = sources(tree)
    settings = (tree / "pyproject.toml").read_text(encoding="utf-8")
    return [
        *long_files(found),
        *long_functions(found),
        *leftover_marks(found),
        *unreasoned_ignores(found),
        *untold_tests(found),
        *dead_modules(found, settings),
        *silent_rooms(found),
        *unlisted_names(found),
        *impure_calls(found),
        *foreign_words(tree),
        *loose_scripts(tree),
    ]


# -- the tests ---------------------------------------------------------------------------------


def test_tree_is_tidy() -> None:
    """Someone runs the tests before handing in a change."""
    assert findings(ROOT) == []


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of a part of the tree that the planted breaches spoil and mend again."""
    tree = tmp_path_factory.mktemp("tree")
    for folder in ("spur/values", "tests/unit/cli", "ops", ".ci"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (tree / "spur/projections").mkdir()
    shutil.copy(ROOT / "spur/projections/tables.py", tree / "spur/projections")
    shutil.copy(ROOT / "pyproject.toml", tree)
    return tree


def appended(line: str) -> Callable[[str], str]:
    """Return a change that adds a line to a file."""
    return lambda text: f"{text}\n{line}\n"


LONG_FUNCTION = "def _sprawl() -> None:\n" + "    pass\n" * 60

PLANTED: list[tuple[str, Callable[[str], str], str]] = [
    ("spur/values/errors.py", appended("# .\n" * 800), "at most 800"),
    ("spur/values/errors.py", appended(LONG_FUNCTION), "_sprawl has 61 lines"),
    ("tests/unit/cli/test_main.py", appended("# FIX" + "ME: later"), "does not reach main"),
    ("spur/values/errors.py", appended("# TO" + "DO: later"), "without its condition"),
    ("spur/values/errors.py", appended("x = y  # type: " + "ignore[name-defined]"), "a reason"),
    ("spur/values/errors.py", appended("import os  # no" + "qa: F401"), "without a reason"),
    ("spur/values/orphan.py", appended('"""Nobody reads this."""'), "nothing imports"),
    ("spur/kitchen/__init__.py", appended('"""A room."""'), "lacks 'Read first:'"),
    ("tests/unit/cli/test_main.py", appended("def test_x() -> None: ..."), "has no docstring"),
    ("spur/values/errors.py", appended("def stray() -> None: ..."), "stray is public"),
    ("spur/values/errors.py", lambda text: text.replace('"Fault",', '"Falt",'), "names Falt"),
    ("spur/projections/tables.py", appended("_seed = hash('node')"), "calls hash()"),
    ("spur/projections/tables.py", appended("for _ in {1, 2}: pass"), "walks a set"),
    ("spur/projections/tables.py", appended("_names = list(set('ab'))"), "left to hashes"),
    ("spur/values/errors.py", appended("# as in /wo" + "rk/notes"), "speaks of"),
    ("ops/setup", appended("# see https://py" + "pi.org/simple"), "speaks of"),
    ("ops/fmt", lambda text: text.replace("set -euo pipefail", ""), "lacks set -euo"),
]


@pytest.mark.parametrize(("file", "change", "sentence"), PLANTED)
def test_tidy_catches_a_planted_breach(
    copied: Path, file: str, change: Callable[[str], str], sentence: str
) -> None:
    """Someone breaks a rule in one place: exactly that place is named."""
    before = findings(copied)
    spoiled = copied / file
    text = spoiled.read_text(encoding="utf-8") if spoiled.exists() else None
    spoiled.parent.mkdir(exist_ok=True)
    spoiled.write_text(change(text or ""), encoding="utf-8")
    try:
        new = [line for line in findings(copied) if line not in before]
    finally:
        if text is None:
            spoiled.unlink()
        else:
            spoiled.write_text(text, encoding="utf-8")
    assert any(line.startswith(file) and sentence in line for line in new), new
    assert all(line.startswith(file) for line in new), new
