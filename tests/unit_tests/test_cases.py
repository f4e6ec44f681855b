"""Cases 41 to 48 and 53, and decisions R1 to R16, each under its number."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from langchain_threadmem import (
    ChatMemory,
    ConversationNode,
    LinearNodeSelector,
    LLMNodeSelector,
    MemorySystem,
    MessageSummary,
    SemanticNodeSelector,
)
from langchain_threadmem.errors import InvalidGraphStateError, SelectionError

Wrap = Callable[[ChatMemory], Any]

CONVERSATION = [
    ("Let's talk about Python", "Python is great for data science and automation."),
    ("What about machine learning?", "For ML, look at scikit-learn and other libraries in Python."),
    ("Now the weather, please", "It is sunny today."),
]


class Counted(BaseChatModel):
    """Answers with JSON text, or raises; counts its calls."""

    answer: str | None = None
    calls: list[int] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "counted"

    def _generate(self, messages: Any, *arguments: Any, **options: Any) -> ChatResult:
        self.calls.append(len(messages))
        if self.answer is None:
            raise ConnectionError("no route")
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.answer))])


def chosen(node_id: int | None) -> str:
    return json.dumps({"selected_node_id": node_id, "reasoning": "it fits"})


def plain(**options: Any) -> ChatMemory:
    return ChatMemory(embeddings=False, **options)


def parents(memory: ChatMemory) -> dict[int, int | None]:
    return {node.id: node.parent_id for node in memory.history}


def texts(messages: list[BaseMessage]) -> list[Any]:
    return [message.content for message in messages]


def branching(**options: Any) -> ChatMemory:
    """A memory that recalls: its selector continues the latest answer."""
    memory = plain(
        node_selector=lambda tree, m: tree.turn_ends()[-1].id if tree.turn_ends() else None, **options
    )
    for human, answer in CONVERSATION:
        memory.append(human, answer)
    return memory


def test_case_41_defaults_and_a_negative_depth() -> None:
    memory = ChatMemory()
    assert isinstance(memory.node_selector, LinearNodeSelector)
    assert (memory.summarizer, memory.context_depth, memory.history) == (None, 5, [])
    assert memory.append("first")[0].id == 1
    with pytest.raises(ValueError, match=r"^context_depth must be non-negative$"):
        ChatMemory(context_depth=-1)


def test_case_42_linear_append_and_reset(system: MemorySystem, verbs: Wrap) -> None:
    verb = verbs(system.conversation("talk"))
    for message in ("H1", ("ai", "A1"), "H2", ("ai", "A2")):
        verb.append(message)
    assert {node.id: node.parent_id for node in verb.history()} == {1: None, 2: 1, 3: 2, 4: 3}
    verb.reset()
    assert verb.history() == []
    assert verb.append("again")[0].id == 1


def test_case_43_linear_retrieve(system: MemorySystem, verbs: Wrap) -> None:
    verb = verbs(system.conversation("talk"))
    assert verb.retrieve("any", 3) == []
    verb.extend(["H1", ("ai", "A2"), "H3", ("ai", "A4")])
    assert texts(verb.retrieve("whatever", n_results=3)) == ["A2", "H3", "A4"]


@pytest.mark.parametrize(
    ("said", "parent"),
    [([], None), (["A"], 1), (["H", "A", "H", "A"], 4), (["H"], None), (["H", "A", "H"], 2)],
)
def test_case_45_the_linear_selector_on_a_graph(said: list[str], parent: int | None) -> None:
    memory = plain()
    memory.extend([("ai" if role == "A" else "human", role) for role in said])
    assert LinearNodeSelector().select_parent(memory.graph, HumanMessage("new")) == parent


@pytest.mark.parametrize(
    ("candidates", "answer", "parent", "calls"),
    [
        (0, chosen(1), None, 0),
        (1, chosen(1), 1, 1),
        (1, chosen(None), None, 1),
        (1, chosen(999), 1, 5),
        (2, chosen(999), 2, 5),
        (2, None, 2, 1),
        (2, chosen(1), 1, 1),
    ],
)
def test_case_46_the_llm_selector(
    candidates: int, answer: str | None, parent: int | None, calls: int
) -> None:
    graph: nx.DiGraph[int] = nx.DiGraph()
    for n in range(1, candidates + 1):
        graph.add_node(n, node=ConversationNode(n, AIMessage(f"A{n}")))
    model = Counted(answer=answer)
    assert LLMNodeSelector(model).select_parent(graph, HumanMessage("new")) == parent
    assert len(model.calls) == calls


def test_case_47_only_human_messages_are_routed(system: MemorySystem, verbs: Wrap) -> None:
    asked: list[str] = []

    def always_first(tree: Any, message: Any) -> int | None:
        asked.append(message.content)
        return 2 if tree.turn_ends() else None

    verb = verbs(system.conversation("talk", node_selector=always_first))
    for n in "123":
        verb.append(f"H{n}", f"A{n}")
    assert {node.id: node.parent_id for node in verb.history()} == {1: None, 2: 1, 3: 2, 4: 3, 5: 2, 6: 5}
    assert asked == ["H1", "H2", "H3"]


def test_case_48_a_hit_with_its_context() -> None:
    memory = branching()
    found = texts(memory.retrieve("scikit-learn libraries", n_results=1, context_depth=2))
    assert found == [CONVERSATION[0][1], CONVERSATION[1][0], CONVERSATION[1][1]]
    found = texts(memory.retrieve("scikit-learn libraries", 1, 2, order="relevance"))
    assert found == [CONVERSATION[1][1], CONVERSATION[1][0], CONVERSATION[0][1]]


def test_case_53_mermaid() -> None:
    memory = plain()
    assert memory.to_mermaid() == "graph TD"
    memory.append("Hello", 'say "x"\ny')
    memory.append(SystemMessage("rule " * 20))
    lines = [line.strip() for line in memory.to_mermaid().splitlines()]
    assert lines == [
        "graph TD",
        '1["H1: Hello"]',
        "2[\"A2: say 'x' y\"]",
        f'3["N3: {("rule " * 20)[:60]}"]',
        "1 --> 2",
        "2 --> 3",
        "style 1 fill:#a7c7e7",
        "style 2 fill:#cdb4f6",
        "style 3 fill:#e0e0e0",
        "classDef default color:#26282c",
    ]


def test_r01_a_failed_selection_takes_the_latest_answer_or_what_the_option_says(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def append_third(**options: Any) -> int | None:
        memory = ChatMemory.threaded(Counted(), embeddings=False, **options)
        memory.append("H1", "A1")
        memory.append("H2", "A2")
        return memory.append("H3")[0].parent_id

    with caplog.at_level(logging.WARNING, "langchain_threadmem"):
        assert append_third() == append_third(on_selection_failure="latest") == 4
        assert append_third(on_selection_failure="root") is None
    assert "no route" in caplog.text
    with pytest.raises(SelectionError):
        append_third(on_selection_failure="raise")


def test_r02_context_depth_none_zero_and_negative() -> None:
    memory = branching(context_depth=1)
    answer = CONVERSATION[1][1]
    assert texts(memory.retrieve("scikit", 1)) == [CONVERSATION[1][0], answer]
    assert texts(memory.retrieve("scikit", 1, context_depth=0)) == [answer]
    for verb in (memory.retrieve, memory.recall):
        with pytest.raises(ValueError, match="context_depth must be non-negative"):
            verb("scikit", 1, -1)


def test_r03_oldest_first_unless_relevance_is_asked_for() -> None:
    memory = branching()
    found = memory.retrieve("scikit", 1, 2)
    assert [message.type for message in found] == ["ai", "human", "ai"]
    assert memory.retrieve("scikit", 1, 2, order="relevance") == found[::-1]


def test_r04_words_are_lower_case_and_free_of_punctuation() -> None:
    memory = branching()
    assert texts(memory.retrieve("SCIKIT learn!", 1, 0)) == [CONVERSATION[1][1]]
    assert set(texts(memory.retrieve("machine learning", 1, 1))) >= {CONVERSATION[1][0]}


def test_r05_one_or_two_messages_and_answers_attach_to_what_they_answer() -> None:
    asked: list[Any] = []

    def elsewhere(tree: Any, message: Any) -> int | None:
        asked.append(message)
        return None

    memory = plain(node_selector=elsewhere)
    memory.append("H1")
    memory.append(AIMessage("A1"))
    memory.append(("user", "H2"), ("assistant", "A2"))
    assert parents(memory) == {1: None, 2: 1, 3: None, 4: 3}
    assert len(asked) == 2


def test_r06_a_forest_is_allowed_and_a_single_tree_is_an_option() -> None:
    forest, tree = (
        plain(node_selector=lambda t, m: None),
        plain(node_selector=lambda t, m: None, single_tree=True),
    )
    for memory in (forest, tree):
        memory.append("H1", "A1")
        memory.append("H2", "A2")
    assert [node.id for node in forest.roots()] == [1, 3]
    assert [node.id for node in tree.roots()] == [1]


def test_r07_linear_append_goes_below_the_last_node_and_the_selector_names_the_last_answer() -> None:
    memory = plain()
    memory.append("H1", "A1")
    memory.append("H2")
    assert memory.append("H3")[0].parent_id == 3
    assert LinearNodeSelector().select_parent(memory.graph, HumanMessage("H4")) == 2


def test_r08_depth_counts_ancestors() -> None:
    hit = branching().recall("scikit", 1, context_depth=2)[0]
    assert [node.id for node in hit.thread] == [2, 3, 4]


def test_r09_modes_are_written_as_linear_and_graph_and_threaded_is_understood(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    for memory, mode in [(plain(), "linear"), (branching(), "graph"), (ChatMemory.threaded("none"), "graph")]:
        memory.save(path)
        assert json.loads(path.read_text())["metadata"]["mode"] == mode
    path.write_text('{"nodes": [], "metadata": {"mode": "threaded"}}')
    again = ChatMemory.load(path, embeddings=False)
    assert isinstance(again.node_selector, SemanticNodeSelector)  # no language model is set up
    mine = LLMNodeSelector(Counted())
    assert ChatMemory.load(path, node_selector=mine, embeddings=False).node_selector is mine


def test_r10_langchain_types_in_memory_and_openai_roles_in_json(tmp_path: Path) -> None:
    memory = plain()
    call = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "c"}])
    memory.extend([SystemMessage("s"), "h", call, ToolMessage("t", tool_call_id="c"), ("ai", "a")])
    document = json.loads(memory.export("json"))
    assert [n["role"] for n in document["nodes"]] == ["system", "user", "assistant", "tool", "assistant"]
    assert [m.type for m in memory.messages] == ["system", "human", "ai", "tool", "ai"]
    path = tmp_path / "langchain.json"
    path.write_text(json.dumps({"nodes": [{"id": 1, "role": "human", "content": "h"}]}))
    assert ChatMemory.load(path, embeddings=False).messages[0].type == "human"


def test_r11_nodes_are_frozen() -> None:
    node = plain().append("H1")[0]
    with pytest.raises(FrozenInstanceError):
        node.summary = MessageSummary(title="t", summary="s")  # type: ignore[misc]
    assert replace(node, summary=MessageSummary(title="t", summary="s")).summary


def test_r12_each_node_comes_once_and_threads_in_one_piece() -> None:
    memory = branching()
    found = texts(memory.retrieve("python scikit learning sunny", 6))
    assert found == [text for turn in CONVERSATION for text in turn]


def test_r13_what_shares_no_word_is_no_hit() -> None:
    memory = branching()
    assert memory.retrieve("zzz nomatch") == []
    assert memory.recall("zzz nomatch") == []
    assert texts(memory.retrieve("zzz nomatch", 1, fallback="recent")) == [CONVERSATION[2][1]]
    assert [hit.node.id for hit in memory.recall("sunny zzz")] == [6]


@pytest.mark.parametrize("extra", [{}, {"summary": None}])
def test_r14_a_summary_may_be_null_or_missing_and_a_time_may_end_in_z(extra: Any, tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    node = {"id": 1, "role": "user", "content": "h", "timestamp": "2024-01-15T10:30:00Z", **extra}
    path.write_text(json.dumps({"version": "1.0", "nodes": [node]}))
    found = ChatMemory.load(path, embeddings=False).history[0]
    assert (found.summary, found.timestamp.isoformat()) == (None, "2024-01-15T10:30:00+00:00")


def test_r15_jsonl_is_a_thread_a_line_or_a_message_a_line() -> None:
    memory = plain()
    memory.append("H1", "A1")
    memory.append("H2", "A2")
    memory.checkout(2)
    memory.append("H3", "A3")
    lines = [json.loads(line) for line in memory.export("jsonl").splitlines()]
    assert [[message["content"] for message in line["messages"]] for line in lines] == [
        ["H1", "A1", "H2", "A2"],
        ["H1", "A1", "H3", "A3"],
    ]
    flat = [json.loads(line) for line in memory.export("jsonl_messages").splitlines()]
    assert flat[:2] == [{"role": "user", "content": "H1"}, {"role": "assistant", "content": "A1"}]
    assert len(flat) == 6


def test_r16_what_is_no_tree_is_refused_on_load_and_on_place(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    for links in ([(1, 2), (2, 1)], [(1, 7)], [(1, None), (1, None)]):
        nodes = [{"id": n, "parent_id": parent, "role": "user", "content": "h"} for n, parent in links]
        path.write_text(json.dumps({"nodes": nodes}))
        with pytest.raises(InvalidGraphStateError, match=r"Use memory\.reset"):
            ChatMemory.load(path, embeddings=False)
    memory = branching()
    with pytest.raises(InvalidGraphStateError):
        memory.place(1, 4)
    assert memory.verify().ok
