"""The layout of the package: first lines of modules, names of files, sizes of folders, cited decisions."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import langchain_threadmem as package

ROOT = Path(package.__path__[0])
MODULES = {str(path.relative_to(ROOT)): path for path in sorted(ROOT.rglob("*.py"))}
ROLES = {"__init__", "queries", "upkeep", "sources", "verbs"}
"""Names of files that have the same role in every folder."""
DIFFERENT = {
    "append",  # threads: the verb; tree: the writer of nodes
    "conversation",  # threads: with a selector; tree: name and tree
    "convert",  # messages: values to messages; transfer: the command
    "librechat",  # exporters: written; importers: read
    "node",  # langgraph: the node of a graph; tree: the node of a tree
    "openwebui",  # exporters: written; importers: read
    "quoting",  # messages: one text; recall: a block of hits
    "rows",  # transfer: rows of a memory; tree: rows of nodes
    "store",  # filters: the dialect of the store; langgraph: the class
    "text",  # exporters: transcripts; messages: lines and cuts
}
"""Names of two files with different subjects."""
CAPITALISED = r"_*[A-Z]\w*[a-z]"
VARIABLES = {"TypeVar", "ParamSpec", "NewType"}


@pytest.mark.parametrize("module", MODULES)
def test_the_first_line_of_a_module_is_one_short_sentence(module: str) -> None:
    docstring = ast.get_docstring(ast.parse(MODULES[module].read_text(encoding="utf-8"))) or ""
    first, *rest = docstring.split("\n")
    assert re.fullmatch(r"[^.]([^.]|\.\w)*\.", first), first
    assert len(first) <= 105, first
    assert not rest or not rest[0]


def test_two_files_have_the_same_name_only_for_different_subjects() -> None:
    stems = Counter(path.stem for path in MODULES.values())
    assert {stem for stem, number in stems.items() if number > 1} - ROLES <= DIFFERENT
    assert [stem for stem in DIFFERENT if stems[stem] > 2] == []


def test_a_folder_has_at_most_18_modules() -> None:
    folders = Counter(path.parent for path in MODULES.values())
    assert {str(folder): number for folder, number in folders.items() if number > 18} == {}


def _imported(path: Path) -> set[str]:
    """The modules that a module imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add(str(node.module))
    return found


def test_sql_is_in_modules_of_sql_and_in_no_flow() -> None:
    for module, path in MODULES.items():
        imported = _imported(path)
        if "sqlalchemy" not in {name.partition(".")[0] for name in imported} or module.startswith("storage/"):
            continue
        # The folder of a memory lists the types of columns.
        assert (
            path.read_text(encoding="utf-8").startswith('"""SQL: ') or module == "apps/transfer/folder.py"
        ), module
        assert "langchain_threadmem.engine.flow" not in imported, module


def test_a_folder_has_one_logger() -> None:
    named = {
        module: re.findall(r"getLogger\((.*)\)", path.read_text(encoding="utf-8"))
        for module, path in MODULES.items()
    }
    assert {module: names for module, names in named.items() if names not in ([], ["__package__"])} == {}


def _types_of(path: Path) -> Iterator[tuple[str, int, str]]:
    """The names of classes, aliases of types and type variables that a module defines, and their lines.

    The last value is "", or for an import under another name, which defines that name, what is imported.
    """
    nodes: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.ClassDef):
            yield node.name, node.lineno, ""
        elif isinstance(node, ast.Import | ast.ImportFrom):
            origin = node.module if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                if alias.asname not in (None, alias.name):
                    yield alias.asname or "", node.lineno, f"{origin}.{alias.name}"
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            made = ast.unparse(node.value.func) if isinstance(node.value, ast.Call) else ""
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and (made in VARIABLES or re.match(CAPITALISED, target.id)):
                    yield target.id, node.lineno, ""
        elif isinstance(node, ast.Module | ast.If | ast.Try | ast.ExceptHandler):
            nodes += ast.iter_child_nodes(node)


def test_a_class_or_alias_is_defined_in_one_module() -> None:
    # Readers search by name: `Turn` and `_Turn` are one name.
    places: dict[str, dict[str, str]] = defaultdict(dict)
    for module, path in MODULES.items():
        for name, line, imported in _types_of(path):
            if imported == "" or re.match(CAPITALISED, name):
                places[name.lstrip("_")][imported or module] = f"{module}:{line}"
    assert {"ChatMemory", "Record", "State", "T", "AbstractSet"} <= places.keys()
    twice = [f"{name}: {', '.join(found.values())}" for name, found in places.items() if len(found) > 1]
    assert not twice, "\n".join(["rename all but one, or import the one definition:", *sorted(twice)])


def test_every_case_and_decision_that_a_test_cites_is_described() -> None:
    tests = Path(__file__).parents[1]
    text = "\n".join(path.read_text(encoding="utf-8") for path in tests.rglob("test_*.py"))
    cases = set(re.findall(r"case_(\d\d)", text)) | set(re.findall(r'^    "([M\d]\d+)\b.*": ', text, re.M))
    decisions = {str(int(number)) for number in re.findall(r"(?:_r|\bR)(\d{1,2})(?=_|\b)", text)}
    page = (tests.parent / "docs" / "decisions.md").read_text(encoding="utf-8")
    assert {"55", "M9"} <= cases
    assert "37" in decisions
    assert sorted(cases - set(re.findall(r"^\| (\w+) \|", page, re.M))) == []
    assert sorted(decisions - set(re.findall(r"^\| R(\d+) \|", page, re.M))) == []
