"""Types: the file that `make types` checks holds every public call with every option."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware

import langchain_threadmem
from langchain_threadmem import ChatMemory, MemorySystem
from langchain_threadmem.chat_memory import ChatMemoryOptions, ConversationOptions
from langchain_threadmem.memory_system import SystemOptions

CALLS = Path(__file__).parents[1] / "typing" / "public_calls.py"
RESULTS = {"ConversationNode", "MemoryUnit", "Recollection"}
"""Classes whose objects the package returns, and does not take."""


def public_functions() -> Iterator[tuple[str, Any]]:
    """The public functions, constructors and methods of the package, by the names that a call has."""
    for name in sorted({*langchain_threadmem.__all__} - RESULTS):
        value = getattr(langchain_threadmem, name)
        yield name, value
        for method in vars(value) if inspect.isclass(value) else ():
            found = getattr(value, method)
            hook = hasattr(AgentMiddleware, method)  # LangChain calls these.
            flow = "Flow[" in str(getattr(found, "__annotations__", {}).get("return"))
            if inspect.isroutine(found) and not (method.startswith("_") or hook or flow):
                yield method, found


def parameters(function: Any) -> set[str]:
    """The names by which arguments are passed; of options, those of their typed dictionary."""
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    found: set[str] = set()
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in named:
            found.add(name)
        elif "Unpack[" in str(parameter.annotation):
            home = sys.modules[function.__module__]
            found |= getattr(home, str(parameter.annotation)[len("Unpack[") : -1]).__annotations__.keys()
    return found - {"self"}


def test_the_calls_that_are_checked_are_all_with_every_option() -> None:
    calls: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(CALLS.read_text())):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            calls.setdefault(name, set()).update(str(keyword.arg) for keyword in node.keywords)
    missing = {
        f"{name}({parameter}=)"
        for name, function in public_functions()
        if not inspect.isclass(function) or "__init__" in vars(function)
        for parameter in parameters(function)
        if parameter not in calls.get(name, set())
    }
    assert missing == set()


@pytest.mark.parametrize(
    ("function", "options", "rest"),
    [
        (ChatMemory, ChatMemoryOptions, set()),
        (ChatMemory, ConversationOptions, {"system", "conversation_id", "embeddings"}),
        (MemorySystem, SystemOptions, {"url"}),
    ],
)
def test_typed_options_are_those_of_the_constructor(function: Any, options: Any, rest: set[str]) -> None:
    assert options.__annotations__.keys() | rest == inspect.signature(function).parameters.keys()


def test_the_async_form_of_a_verb_has_its_name_and_its_description() -> None:
    assert ChatMemory.aappend.__qualname__ == "ChatMemory.aappend"
    assert inspect.getdoc(ChatMemory.aappend).startswith("Async `append`.\n\nStore one turn")  # type: ignore[union-attr]
    assert "Example" not in str(ChatMemory.aappend.__doc__)


def test_the_signature_of_a_verb_names_its_result() -> None:
    assert inspect.signature(ChatMemory.append).return_annotation == "list[ConversationNode]"
    assert inspect.signature(ChatMemory.aappend).return_annotation == "list[ConversationNode]"


def test_a_subclass_overrides_a_verb() -> None:
    class Loud(ChatMemory):
        def append(self, *messages: Any) -> Any:
            return super().append(*(str(message).upper() for message in messages))

    memory = Loud.semantic(embeddings=False)
    assert memory.append("hello")[0].message.content == "HELLO"
