"""A lint of the flows: mistakes that Python does not report.

A flow that is called without `yield from` does nothing and says nothing; a flow that catches `BaseException`
swallows cancellation. Both are found here in the source of the package; the lint is tested on bad examples.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import langchain_threadmem as package

ROOT = Path(package.__path__[0])
STEPS = {"Sql", "Call", "snapshot"}
TOO_WIDE = {"BaseException", "GeneratorExit", "CancelledError"}


def is_flow(node: ast.AST) -> bool:
    """Whether it is a function that returns a flow; `@verb` makes one that runs it."""
    returns = getattr(node, "returns", None)
    verb = any(ast.unparse(one) == "verb" for one in getattr(node, "decorator_list", ()))
    return returns is not None and not verb and ast.unparse(returns).startswith(("Flow[", "Steps["))


def defined(tree: ast.Module) -> set[str]:
    """The functions of a module that are flows."""
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and is_flow(node)}


def flow_names(tree: ast.Module, flows: Mapping[str, set[str]]) -> set[str]:
    """The names that stand for a step or a flow in a module.

    Args:
        tree: The module.
        flows: The flows that each module of the package defines.
    """
    found = STEPS | defined(tree) | {f"self.{name}" for name in methods(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name
                found |= {f"{name}.{flow}" for flow in flows.get(f"{node.module}.{alias.name}", ())}
                found |= {name} if alias.name in flows.get(str(node.module), ()) else set()
    return found


def methods(tree: ast.Module) -> set[str]:
    """The methods of a module that are flows, but those that share their name with one that is none."""
    functions = [
        node
        for owner in ast.walk(tree)
        if isinstance(owner, ast.ClassDef)
        for node in owner.body
        if isinstance(node, ast.FunctionDef)
    ]
    others = {node.name for node in functions if not is_flow(node)}
    return {node.name for node in functions if is_flow(node)} - others


def called(node: ast.expr) -> str:
    target = node.func if isinstance(node, ast.Call) else node
    if isinstance(target, ast.Subscript):  # Sql[int](...)
        target = target.value
    return ast.unparse(target)


def faults(tree: ast.Module, names: set[str]) -> Iterator[str]:
    """One sentence for each rule that a module breaks."""
    driven = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.YieldFrom)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and called(node.value) in names:
            yield f"line {node.lineno}: {called(node.value)}() is called and not driven: write `yield from`"
        elif isinstance(node, ast.Yield) and node.value is not None and called(node.value) in names:
            yield f"line {node.lineno}: `yield` where `yield from` is meant"
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
            if called(node.value) in names and id(node.value) not in driven:
                yield f"line {node.lineno}: the flow {called(node.value)}() is kept instead of its result"
        elif isinstance(node, ast.ExceptHandler):
            caught = ast.walk(node.type) if node.type is not None else []
            kinds = {getattr(part, "id", getattr(part, "attr", "")) for part in caught}
            reraises = any(isinstance(inner, ast.Raise) and inner.exc is None for inner in node.body)
            if (node.type is None or TOO_WIDE & kinds) and not reraises:
                yield f"line {node.lineno}: catches cancellation; catch Exception"


TREES = {
    ".".join((ROOT.name, *path.relative_to(ROOT).with_suffix("").parts)): ast.parse(path.read_text())
    for path in sorted(ROOT.rglob("*.py"))
}
FLOWS = {name: defined(tree) for name, tree in TREES.items()}
FLOWS["langchain_threadmem.engine.flow"] = STEPS


@pytest.mark.parametrize("name", [name for name in TREES if not name.endswith("engine.flow")])
def test_a_module_of_flows_keeps_the_rules(name: str) -> None:
    assert list(faults(TREES[name], flow_names(TREES[name], FLOWS))) == []


def test_the_flows_are_found() -> None:
    names = flow_names(TREES["langchain_threadmem.selection.append"], FLOWS)
    assert {"tree_of", "select", "append"} <= names
    assert "self.settle" in flow_names(TREES["langchain_threadmem.index.units.visits"], FLOWS)


GOOD = """
from langchain_threadmem.engine import flow

def inner() -> Flow[int]:
    return (yield from Sql(read))

def outer() -> Flow[None]:
    value = yield from inner()
    yield from inner()
    try:
        yield from Call(call)
    except Exception:
        log.warning("failed")
    try:
        write()
    except BaseException:
        undo()
        raise

class Kept:
    def _read(self) -> Flow[int]:
        return (yield from inner())

    def outer(self) -> Flow[int]:
        return (yield from self._read())
"""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("    yield from inner()\n", "    inner()\n"),
        ("    yield from inner()\n", "    yield inner()\n"),
        ("    value = yield from inner()\n", "    value = inner()\n"),
        ("        yield from Call(call)\n", "        Call(call)\n"),
        ("        yield from Call(call)\n", "        flow.Call(call)\n"),
        ("        yield from Call(call)\n", "        Call[int](call)\n"),
        ("    except Exception:\n", "    except BaseException:\n"),
        ("    except Exception:\n", "    except:\n"),
        ("    except Exception:\n", "    except (ValueError, asyncio.CancelledError) as error:\n"),
        ("        undo()\n        raise\n", "        undo()\n"),
        ("        return (yield from self._read())\n", "        self._read()\n"),
    ],
)
def test_the_lint_finds_a_fault(right: str, wrong: str) -> None:
    bad = GOOD.replace(right, wrong)
    assert bad != GOOD
    names = flow_names(ast.parse(GOOD), FLOWS)
    assert list(faults(ast.parse(GOOD), names)) == []
    assert len(list(faults(ast.parse(bad), names))) == 1


def test_no_flow_is_a_coroutine() -> None:
    mixed = [
        function.name
        for tree in TREES.values()
        for function in ast.walk(tree)
        if isinstance(function, ast.AsyncFunctionDef)
        and function.returns is not None
        and ast.unparse(function.returns).startswith("Flow[")
    ]
    assert mixed == []


WITHOUT_STATEMENTS = {"langchain_threadmem.apps.transfer.folder"}
"""Modules that use types of columns alone."""
MIXED = {"langchain_threadmem.index.removal"}


@pytest.mark.parametrize("name", TREES)
def test_sql_is_in_modules_that_say_so_and_hold_no_flows(name: str) -> None:
    tree = TREES[name]
    modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    has_sql = any(module.split(".")[0] == "sqlalchemy" for module in modules)
    if has_sql and ".storage." not in name and name not in WITHOUT_STATEMENTS | MIXED:
        assert (ast.get_docstring(tree) or "").startswith("SQL")
        assert "langchain_threadmem.engine.flow" not in modules
