"""The public names: the list, their docstrings, and the cost of importing them."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import langchain_threadmem
from langchain_threadmem import ChatMemory, MemorySystem, errors

NAMES = [
    "ChatMemory",
    "ChatMemoryStore",
    "ConversationNode",
    "ExtractiveSummarizer",
    "LLMNodeSelector",
    "LLMSummarizer",
    "Language",
    "LinearNodeSelector",
    "LocalEmbeddings",
    "MemorySettings",
    "MemorySystem",
    "MemoryUnit",
    "MessageSummary",
    "MessageWindow",
    "MessageWindowChatMemory",
    "MultilingualEmbeddings",
    "NodeSelector",
    "Recollection",
    "Reranker",
    "SemanticNodeSelector",
    "Summarizer",
    "ThreadMemChatMessageHistory",
    "ThreadMemMiddleware",
    "ThreadMemRetriever",
    "ThreadMemSaver",
    "ThreadMemStore",
    "TokenWindow",
    "TokenWindowChatMemory",
    "create_threaded_chat",
    "select_thread_node",
]
HEAVY = ["chromadb", "sqlalchemy", "networkx", "langgraph", "openai", "numpy", "langchain_core", "pydantic"]
VERBS = [
    *("append", "extend", "edit", "regenerate", "place", "checkout", "summarize", "forget", "reset"),
    *("messages", "tip", "history", "graph", "threads", "thread", "roots", "retrieve", "recall"),
    *("siblings", "versions", "fork_point", "thread_of", "switch", "list_threads", "doubtful"),
    *("rename_thread", "sort", "unsort", "instructions", "revoke_instruction"),
    *("to_mermaid", "export", "save", "load", "flush", "verify", "close"),
]
SYSTEM_VERBS = [
    *("conversations", "flush", "verify", "rekey", "stats", "reindex", "reset_corrections", "close"),
    *("list_conversations", "update_conversation", "import_file"),
    *("start_session", "switch_session", "remove_session", "sessions", "add_memory", "get_context"),
    *(
        "summarize_session",
        "summarize_thread",
        "summarize_long_term_memory",
        "unit",
        "unfold",
    ),
    *("enable_stm", "disable_stm", "query", "forget", "erase", "check_erased", "scrub"),
]


def test_the_public_names_are_these() -> None:
    assert sorted(langchain_threadmem.__all__) == NAMES
    assert set(dir(langchain_threadmem)) >= {*NAMES, "__version__"}


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_can_be_imported_and_is_described(name: str) -> None:
    value: Any = getattr(langchain_threadmem, name)
    assert value.__name__ == name
    assert inspect.getdoc(value)
    for attribute, member in vars(value).items():
        if not attribute.startswith("_") and (callable(member) or isinstance(member, property | classmethod)):
            assert inspect.getdoc(getattr(value, attribute)), f"{name}.{attribute} has no docstring"


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = langchain_threadmem.Nonsense
    with pytest.raises(ImportError):
        exec("from langchain_threadmem import Nonsense")


def test_every_verb_has_an_async_twin_with_the_same_parameters() -> None:
    for cls, verb in [(ChatMemory, verb) for verb in VERBS] + [(MemorySystem, verb) for verb in SYSTEM_VERBS]:
        found = inspect.getattr_static(cls, verb)
        twin = getattr(cls, f"a{verb}")
        assert inspect.iscoroutinefunction(twin), verb
        if not isinstance(found, property):
            ours, theirs = inspect.signature(getattr(cls, verb)), inspect.signature(twin)
            assert list(ours.parameters.values()) == list(theirs.parameters.values()), verb


def test_every_public_attribute_of_a_memory_is_a_verb_or_an_option() -> None:
    options = {"conversation_id", "context_depth", "node_selector", "summarizer", "semantic", "threaded"}
    public = {name for name in dir(ChatMemory) if not name.startswith("_")}
    assert public == {*VERBS, *(f"a{verb}" for verb in VERBS), *options}


def test_a_memory_system_offers_these() -> None:
    public = {name for name in dir(MemorySystem) if not name.startswith("_")}
    others = {
        "owner",
        "for_owner",
        "of_run",
        "runtime",
        "conversation",
        "session_id",
        "usage",
        "connect_external",
        "disconnect_external",
        "aopen",
    }
    assert public == {*others, *SYSTEM_VERBS, *(f"a{name}" for name in SYSTEM_VERBS)}


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = f"import sys, langchain_threadmem; print([m for m in {HEAVY!r} if m in sys.modules])"
    assert _python(code) == "[]"


def test_importing_the_saver_imports_no_database_and_no_arrays() -> None:
    heavy = ["sqlalchemy", "numpy", "snowballstemmer", "chromadb", "networkx", "openai", "langgraph.graph"]
    own = [f"langchain_threadmem.{room}" for room in ("chat_memory", "selection", "summaries", "recall")]
    code = "import sys; from langchain_threadmem import ThreadMemSaver; "
    assert _python(f"{code}print([m for m in {[*heavy, *own]!r} if m in sys.modules])") == "[]"


def test_a_linear_memory_imports_no_index_no_graph_and_no_model_client() -> None:
    heavy = ["chromadb", "networkx", "langgraph", "openai", "onnxruntime"]
    talk = "from langchain_threadmem import ChatMemory; m = ChatMemory(); m.append('a', 'b'); m.messages"
    code = f"import sys; {talk}; print([m for m in {heavy!r} if m in sys.modules])"
    assert _python(code) == "[]"


def test_the_middleware_without_langchain_names_the_extra_that_brings_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "langchain.agents.middleware.types", None)
    monkeypatch.delitem(sys.modules, "langchain_threadmem.langgraph.middleware", raising=False)
    monkeypatch.delitem(vars(langchain_threadmem), "ThreadMemMiddleware", raising=False)
    with pytest.raises(ImportError, match=r"langchain-threadmem\[agents\]"):
        from langchain_threadmem import ThreadMemMiddleware  # noqa: F401


def _python(code: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_every_error_is_described_and_drawn_in_the_tree() -> None:
    found = [value for value in vars(errors).values() if inspect.isclass(value)]
    for error in found:
        assert issubclass(error, errors.ThreadMemError)
        assert error.__doc__
        assert error.__name__ in (errors.__doc__ or "")
    assert issubclass(errors.InputError, ValueError)
    assert issubclass(errors.NodeNotFoundError, KeyError)


def members_of(name: str) -> list[str]:
    """The public members of a class, without async forms and without those of other packages' classes."""
    value = getattr(langchain_threadmem, name)
    if not inspect.isclass(value):
        return []
    bases = [base for base in inspect.getmro(value) if not base.__module__.startswith("langchain_threadmem")]
    foreign = {key for base in bases for key in vars(base)}
    own = [key for key in dir(value) if not key.startswith("_") and key not in foreign]
    return [key for key in own if not (key.startswith("a") and key[1:] in own)]


def test_the_documentation_lists_all_public_members_and_they_are_at_most_200() -> None:
    page = (Path(__file__).parents[2] / "docs" / "api" / "index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ((?:`\w+` ?)+) \|$", page.partition("## All names")[2], re.M)
    listed = {name: re.findall(r"`(\w+)`", members) for name, members in rows}
    assert listed == {name: members for name in NAMES if (members := members_of(name))}
    assert sum(map(len, listed.values())) <= 200
