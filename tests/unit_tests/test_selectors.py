"""Selectors: calls, views, valid answers, and failures."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import StreamCipher, WordEmbeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_threadmem import (
    ChatMemory,
    ExtractiveSummarizer,
    LinearNodeSelector,
    MemorySystem,
    MessageWindow,
    NodeSelector,
    SemanticNodeSelector,
    ThreadMemChatMessageHistory,
    ThreadMemMiddleware,
    ThreadMemStore,
    TokenWindow,
    create_threaded_chat,
    select_thread_node,
)
from langchain_threadmem.errors import (
    DriverError,
    InputError,
    NodeNotFoundError,
    PersistenceError,
    SelectionError,
)

Wrap = Callable[[ChatMemory], Any]


class Recorder:
    """A selector that always starts a thread and records the messages."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def select_parent(self, tree: Any, message: Any) -> int | None:
        self.asked.append(message)
        return None


class Both(Recorder):
    """A selector with a separate async method."""

    def __init__(self) -> None:
        super().__init__()
        self.awaited = 0

    async def aselect_parent(self, tree: Any, message: Any) -> int | None:
        self.awaited += 1
        return None


def parents(nodes: list[Any]) -> list[int | None]:
    return [node.parent_id for node in nodes]


def test_a_selector_is_asked_once_for_each_human_message_and_for_no_other(
    system: MemorySystem, verbs: Wrap
) -> None:
    selector = Recorder()
    verb = verbs(system.conversation("talk", node_selector=selector))
    call = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "c"}])
    verb.append("one", call, ToolMessage("r", tool_call_id="c"), "done")
    verb.append(AIMessage("and another thing"))
    verb.append(SystemMessage("rule"))
    verb.append("two")
    assert [(m.type, m.content) for m in selector.asked] == [("human", "one"), ("human", "two")]
    assert parents(verb.history()) == [None, 1, 2, 3, 4, 5, None]


def test_an_object_a_function_and_their_async_forms_all_serve(system: MemorySystem, verbs: Wrap) -> None:
    def first(tree: Any, message: Any) -> int | None:
        ends = tree.turn_ends()
        return ends[0].id if ends else None

    class First:
        def select_parent(self, tree: Any, message: Any) -> int | None:
            return first(tree, message)

    for name, selector in {"function": first, "object": First()}.items():
        verb = verbs(system.conversation(name, node_selector=selector))
        for word in "abc":
            verb.append(word, word.upper())
        assert parents(verb.history()) == [None, 1, 2, 3, 2, 5]
    assert isinstance(First(), NodeSelector)


def test_an_async_selector_is_awaited_by_async_verbs(system: MemorySystem) -> None:
    async def last(tree: Any, message: Any) -> int | None:
        await asyncio.sleep(0)
        return tree.turn_ends()[-1].id if tree.turn_ends() else None

    both = Both()

    async def talk() -> list[int | None]:
        memory = system.conversation("async", node_selector=last)
        await memory.aappend("a", "A")
        await memory.aappend("b", "B")
        other = system.conversation("both", node_selector=both)
        await other.aappend("a", "A")
        found = parents(await memory.ahistory())
        await system.aclose()
        return found

    assert asyncio.run(talk()) == [None, 1, 2, 3]
    assert (both.awaited, both.asked) == (1, [])


def test_an_async_selector_cannot_serve_a_sync_verb_and_nothing_is_stored() -> None:
    async def last(tree: Any, message: Any) -> int | None:
        return None

    memory = ChatMemory(node_selector=last, embeddings=False)  # type: ignore[arg-type]
    with pytest.raises(DriverError, match="call aappend"):
        memory.append("a")
    assert memory.history == []


def test_what_a_selector_sees_of_the_tree(system: MemorySystem, verbs: Wrap) -> None:
    seen: list[Any] = []

    def look(tree: Any, message: Any) -> int | None:
        ends = tree.turn_ends()
        graph, thread = tree.graph, [node.id for end in ends for node in tree.thread(end.id)]
        seen.append(([(end.id, end.previous, end.human, end.answer) for end in ends], sorted(graph), thread))
        with pytest.raises(NodeNotFoundError):
            tree.thread(99)
        return ends[-1].id if ends else None

    verb = verbs(system.conversation("talk", node_selector=look))
    verb.append("q1", "a1", "a1 goes on")
    verb.append("q2", "a2")
    verb.append("q3")
    assert seen == [
        ([], [], []),
        ([(3, None, "q1", "a1 goes on")], [1, 2, 3], [1, 2, 3]),
        ([(3, None, "q1", "a1 goes on"), (5, 3, "q2", "a2")], [1, 2, 3, 4, 5], [1, 2, 3, 1, 2, 3, 4, 5]),
    ]


def test_an_awaited_selector_may_look_at_the_tree_too(system: MemorySystem) -> None:
    async def look(tree: Any, message: Any) -> int | None:
        ends = tree.turn_ends()
        assert len(tree.graph) == sum(len(tree.thread(end.id)) for end in ends[-1:])
        return ends[-1].id if ends else None

    async def talk() -> int | None:
        async with system:
            memory = system.conversation("talk", node_selector=look, on_selection_failure="raise")
            for word in "abc":
                await memory.aappend(word, word.upper())
            return (await memory.ahistory())[-2].parent_id

    assert asyncio.run(talk()) == 4


def test_turn_ends_are_answers_and_questions_without_an_answer(system: MemorySystem, verbs: Wrap) -> None:
    seen: list[list[int]] = []

    def look(tree: Any, message: Any) -> int | None:
        seen.append([end.id for end in tree.turn_ends()])
        return None

    verb = verbs(system.conversation("talk", node_selector=look))
    verb.append("open", AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "c"}]))
    verb.append("asked")
    verb.append("q", "a")
    verb.regenerate(5, "better")
    verb.append("next")
    assert seen[-1] == [1, 3, 6]


def wrong(tree: Any, message: Any) -> int | None:
    return 1 if tree.turn_ends() else None  # a human node: no answer


def broken(tree: Any, message: Any) -> int | None:
    if tree.turn_ends():
        raise RuntimeError("broken")
    return None


@pytest.mark.parametrize("selector", [wrong, broken, lambda tree, message: 999, lambda tree, message: "2"])
@pytest.mark.parametrize(("choice", "parent"), [("latest", 4), ("root", None)])
def test_a_failed_selection_goes_where_the_memory_says_with_a_warning(
    system: MemorySystem,
    verbs: Wrap,
    caplog: pytest.LogCaptureFixture,
    selector: Any,
    choice: Any,
    parent: int | None,
) -> None:
    memory = system.conversation("talk", node_selector=selector, on_selection_failure=choice)
    memory.extend(["a", ("ai", "A"), "b", ("ai", "B")])
    memory.checkout(2)  # the latest answer counts, wherever the tip is
    with caplog.at_level(logging.WARNING, "langchain_threadmem"):
        assert verbs(memory).append("c", "C")[0].parent_id == parent
    assert len(caplog.records) == 1


@pytest.mark.parametrize("selector", [wrong, broken])
def test_a_failed_selection_raises_if_it_is_to_and_stores_nothing(
    system: MemorySystem, verbs: Wrap, selector: Any
) -> None:
    verb = verbs(system.conversation("talk", node_selector=selector, on_selection_failure="raise"))
    verb.append("a", "A")
    with pytest.raises(SelectionError):
        verb.append("b", "B")
    assert len(verb.history()) == 2


def stating(reason: Any, chances: Any) -> Any:
    """A selector that begins a thread, with a reason and probabilities."""

    def select(tree: Any, message: Any) -> int | None:
        tree.reason, tree.chances = reason, chances
        return None

    return select


@pytest.mark.parametrize(
    ("reason", "chances"),
    [
        *((3, ()), (b"shares a word", ())),
        *(("a guess", chances) for chances in (3, [("x", 0.5)], [(None, "much")], [(2**70, 0.5)])),
        *(("a guess", [(None, chance)]) for chance in (float("nan"), float("inf"), -1.0, 10**400)),
    ],
    ids=ascii,
)
def test_an_explanation_that_cannot_be_stored_is_a_failed_selection(
    system: MemorySystem, verbs: Wrap, reason: Any, chances: Any
) -> None:
    memory = system.conversation("talk", node_selector=stating(reason, chances))
    memory.extend(["a", ("ai", "A")])
    assert parents(verbs(memory).append("b", "B")) == [2, 3]
    assert "the selector failed" in str(memory.history[2].placement)
    assert memory.verify().ok


def test_an_explanation_may_have_numbers_of_numpy_and_half_a_character(
    system: MemorySystem, verbs: Wrap
) -> None:
    memory = system.conversation(
        "talk", node_selector=stating("shares \ud800", [(np.int64(2), np.float32(0.75))])
    )
    memory.extend(["a", ("ai", "A")])
    assert parents(verbs(memory).append("b", "B")) == [None, 3]
    placement = memory.history[2].placement
    assert placement is not None
    assert (placement.reason, placement.chances) == ("shares \ufffd", ((2, 0.75),))


def test_a_storage_error_is_no_failed_selection(system: MemorySystem, verbs: Wrap) -> None:
    def locked(tree: Any, message: Any) -> int | None:
        raise PersistenceError("the disk is gone")

    with pytest.raises(PersistenceError, match="disk"):
        verbs(system.conversation("talk", node_selector=locked)).append("a")


def test_a_numpy_integer_is_an_answer_too(system: MemorySystem, verbs: Wrap) -> None:
    def argmax(tree: Any, message: Any) -> Any:
        ends = np.array([end.id for end in tree.turn_ends()])
        return ends.max() if len(ends) else None

    verb = verbs(system.conversation("talk", node_selector=argmax, on_selection_failure="raise"))
    verb.append("a", "A")
    assert verb.append("b")[0].parent_id == 2


def test_a_single_tree_has_one_root_whatever_the_selector_says(system: MemorySystem, verbs: Wrap) -> None:
    verb = verbs(system.conversation("talk", node_selector=Recorder(), single_tree=True))
    for word in "abc":
        verb.append(word, word.upper())
    assert parents(verb.history()) == [None, 1, 2, 3, 4, 5]


def test_the_semantic_selector_sorts_topics_and_opens_new_ones(system: MemorySystem, verbs: Wrap) -> None:
    verb = verbs(system.conversation("talk", node_selector=SemanticNodeSelector()))
    verb.append("How do I read a CSV file in pandas?", "Call pandas read_csv on the CSV file.")
    verb.append(
        "Hello! I need a hotel in Oslo with breakfast tonight.", "The Fjord hotel in Oslo has breakfast."
    )
    third = verb.append("Can pandas read_csv skip the header of that CSV file?", "Yes, pass header=None.")
    assert [[node.id for node in thread] for thread in verb.threads()] == [[3, 4], [1, 2, 5, 6]]
    assert third[0].parent_id == 2


@pytest.mark.parametrize("selector", [LinearNodeSelector(), SemanticNodeSelector()])
def test_built_in_selectors_work_on_a_bare_graph_in_both_modes(selector: Any, system: MemorySystem) -> None:
    memory = system.conversation("talk")
    memory.append("pandas csv", "read_csv for pandas")
    own = (
        selector
        if isinstance(selector, LinearNodeSelector)
        else SemanticNodeSelector(system.runtime.embedder.embeddings)
    )
    question = HumanMessage("and it?")
    for tree, answer in [({}, None), (memory.graph, 2)]:
        assert own.select_parent(tree, question) == answer
        assert asyncio.run(own.aselect_parent(tree, question)) == answer


def test_a_selector_refuses_what_is_no_tree() -> None:
    with pytest.raises(InputError, match="networkx graph, not 'list'"):
        LinearNodeSelector().select_parent([1, 2], HumanMessage("x"))


def test_a_turn_placed_below_a_later_turn_does_not_stop_the_selection(
    system: MemorySystem, verbs: Callable[..., Any]
) -> None:
    memory = verbs(
        system.conversation("c", node_selector=SemanticNodeSelector(), on_selection_failure="raise")
    )
    memory.append("How do I bake rye bread?", "With sourdough and patience.")
    car = memory.append("My car squeaks when it is cold.", "Check the belt of the engine.")
    if car[0].parent_id is not None:
        memory.place(car[0].id, None)
    memory.place(1, car[1].id)
    memory.append("How long does the dough of the bread rest?", "Twelve hours.")
    assert memory.append("Is the belt of the car expensive?")[0].placement.reason


def test_probabilities_without_a_reason_are_kept_and_used(system: MemorySystem, verbs: Wrap) -> None:
    def torn(tree: Any, message: Any) -> int | None:
        ends = [end.id for end in tree.turn_ends()]
        if len(ends) < 2:
            return None
        tree.chances = [(ends[0], 0.6), (ends[1], 0.4)]
        return ends[0]

    verb = verbs(system.conversation("talk", node_selector=torn))
    verb.append("a", "A")
    verb.append("b", "B")
    [node] = verb.append("c")
    assert node.placement is not None
    assert (node.placement.reason, node.placement.chances) == ("continues node 2", ((2, 0.6), (4, 0.4)))
    *thread, block, question = verb.messages()
    assert [message.content for message in (*thread, question)] == ["a", "A", "c"]
    assert ">b</human>\n<ai>B</ai>" in block.content
    assert [doubt.node.id for doubt in verb.doubtful()] == [5]


def test_a_class_instead_of_an_object_is_refused() -> None:
    selector: Any = SemanticNodeSelector
    window: Any = MessageWindow
    summarizer: Any = ExtractiveSummarizer
    embeddings: Any = WordEmbeddings
    model: Any = FakeListChatModel
    owner: Any = MemorySystem
    cipher: Any = StreamCipher
    talks = FakeListChatModel(responses=[""])
    with MemorySystem(embeddings=False) as system:
        calls: list[Callable[[], Any]] = [
            lambda: ChatMemory(node_selector=selector),
            lambda: ChatMemory(summarizer=summarizer),
            lambda: ChatMemory(window=window),
            lambda: ChatMemory(embeddings=embeddings),
            lambda: ChatMemory(system=owner),
            lambda: ChatMemory.threaded(model),
            lambda: MemorySystem(summarizer=summarizer),
            lambda: MemorySystem(token_counter=model),
            lambda: MemorySystem(cipher=cipher),
            lambda: MemorySystem(embeddings=embeddings),
            lambda: MemorySystem(vectors=cipher),
            lambda: SemanticNodeSelector(embeddings),
            lambda: TokenWindow(10, model),
            lambda: system.conversation("c", node_selector=selector),
            lambda: select_thread_node(system, selector),
            lambda: select_thread_node(system, window=window),
            lambda: create_threaded_chat(talks, system, selector=selector),
            lambda: create_threaded_chat(model, system),
            lambda: ThreadMemMiddleware(system, selector=selector),
            lambda: ThreadMemMiddleware(system, window=window),
            lambda: ThreadMemChatMessageHistory("c", system, node_selector=selector),
            lambda: ThreadMemStore(system, index={"embed": embeddings, "dims": 64}),
        ]
        for call in calls:
            with pytest.raises(InputError, match="class"):
                call()
