"""A lint of the flows: what Python does not notice and a reader overlooks.

A flow that is called without `yield from` does nothing and says nothing; a flow that catches `BaseException`
swallows cancellation. Both are found here in the source of `flows/`; the lint is tested on bad examples.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import langchain_threadmem.flows as package

SOURCES = sorted(Path(package.__path__[0]).glob("*.py"))
STEPS = {"Sql", "Snapshot", "Call"}
TOO_WIDE = {"BaseException", "GeneratorExit", "CancelledError"}


def is_flow(node: ast.AST) -> bool:
    returns = getattr(node, "returns", None)
    return returns is not None and ast.unparse(returns).startswith("Flow[")


def flow_names(tree: ast.Module, all_flows: set[str] | frozenset[str] = frozenset()) -> set[str]:
    """The names that stand for a step or a flow in a module: defined there, or imported from another."""
    found = STEPS | {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and is_flow(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom):
            continue
        names = {alias.asname or alias.name for alias in node.names}
        if node.module == "langchain_threadmem.flows":
            found |= {f"{module}.{name}" for module in names for name in STEPS | all_flows}
        elif (node.module or "").startswith("langchain_threadmem.flows."):
            found |= names & all_flows
    return found


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


PARSED = {path.name: ast.parse(path.read_text()) for path in SOURCES}
ALL = set().union(*map(flow_names, PARSED.values()))


@pytest.mark.parametrize("name", [name for name in PARSED if name != "steps.py"])
def test_a_module_of_flows_keeps_the_rules(name: str) -> None:
    assert list(faults(PARSED[name], flow_names(PARSED[name], ALL))) == []


def test_the_flows_are_found() -> None:
    assert {"append", "recall", "reset", "tree_of", "catch_up_words", "Sql"} <= ALL
    assert {"tree_of", "select", "append"} <= flow_names(PARSED["append.py"], ALL)


GOOD = """
from langchain_threadmem.flows import steps

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
"""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("    yield from inner()\n", "    inner()\n"),
        ("    yield from inner()\n", "    yield inner()\n"),
        ("    value = yield from inner()\n", "    value = inner()\n"),
        ("        yield from Call(call)\n", "        Call(call)\n"),
        ("        yield from Call(call)\n", "        steps.Call(call)\n"),
        ("        yield from Call(call)\n", "        Call[int](call)\n"),
        ("    except Exception:\n", "    except BaseException:\n"),
        ("    except Exception:\n", "    except:\n"),
        ("    except Exception:\n", "    except (ValueError, asyncio.CancelledError) as error:\n"),
        ("        undo()\n        raise\n", "        undo()\n"),
    ],
)
def test_the_lint_finds_a_fault(right: str, wrong: str) -> None:
    bad = GOOD.replace(right, wrong)
    assert bad != GOOD
    names = flow_names(ast.parse(GOOD))
    assert list(faults(ast.parse(GOOD), names)) == []
    assert len(list(faults(ast.parse(bad), names))) == 1


def test_no_flow_is_a_coroutine() -> None:
    mixed = [
        function.name
        for tree in PARSED.values()
        for function in ast.walk(tree)
        if isinstance(function, ast.AsyncFunctionDef)
        and function.returns is not None
        and ast.unparse(function.returns).startswith("Flow[")
    ]
    assert mixed == []
