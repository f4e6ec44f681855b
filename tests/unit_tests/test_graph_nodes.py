"""The node that selects threads: its questions, its writes, and the list that it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import pytest
from conftest import WordEmbeddings, by_first_word
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import convert_to_messages
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph.message import add_messages

from langchain_threadmem import (
    ChatMemory,
    LinearNodeSelector,
    MemorySystem,
    MessageWindow,
    ThreadMemMiddleware,
    create_threaded_chat,
    select_thread_node,
)
from langchain_threadmem.engine.flow import run
from langchain_threadmem.errors import InputError, SelectionError
from langchain_threadmem.langgraph.node import recall_node, store_turn_node
from langchain_threadmem.maintenance.removal.forget import forget_message
from langchain_threadmem.messages.quoting import is_block
from langchain_threadmem.selection.tree_view import TreeView
from langchain_threadmem.storage.schema import State

CONFIG: RunnableConfig = {"configurable": {"thread_id": "talk"}}
Invoke = Callable[..., dict[str, Any]]


class ByFirstWord:
    """Continues the newest turn whose question begins with the same word; records the messages."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def select_parent(self, tree: TreeView, message: BaseMessage) -> int | None:
        self.asked.append(str(message.content))
        return by_first_word(tree, message)


@pytest.fixture
def selector() -> ByFirstWord:
    return ByFirstWord()


@pytest.fixture
def invoke(invoke: Callable[..., Any]) -> Invoke:
    """Runs a node on a list, and returns its update with `messages` applied to the list."""

    def call(node: Runnable[Any, Any], given: Sequence[BaseMessage], **state: Any) -> dict[str, Any]:
        values = {"messages": list(given), **state}
        update = invoke(node, values, CONFIG)
        return {**values, **update, "messages": add_messages(values["messages"], update.get("messages", []))}

    return call


def human(text: str) -> HumanMessage:
    return HumanMessage(text, id=f"h:{text}")


def ai(text: str) -> AIMessage:
    return AIMessage(text, id=f"a:{text}")


def said(state: dict[str, Any]) -> list[str]:
    return [message.content for message in state["messages"]]


def texts(memory: ChatMemory) -> list[list[str]]:
    return [[str(node.message.content) for node in thread] for thread in memory.threads()]


def talk(invoke: Invoke, node: Runnable[Any, Any], *turns: str) -> dict[str, Any]:
    """A conversation in a list: each turn is selected, then answered."""
    state: dict[str, Any] = {"messages": []}
    for turn in turns:
        state = invoke(node, [*state["messages"], human(turn)])
        state["messages"] = [*state["messages"], ai(f"re {turn}")]
    return state


def test_each_message_goes_to_its_thread(system: MemorySystem, selector: ByFirstWord, invoke: Invoke) -> None:
    node = select_thread_node(system, selector)
    state = talk(invoke, node, "tea one", "cat one", "tea two", "cat two")
    assert said(state) == ["cat one", "re cat one", "cat two", "re cat two"]
    invoke(store_turn_node(system), state["messages"])
    assert texts(system.conversation("talk")) == [
        ["tea one", "re tea one", "tea two", "re tea two"],
        ["cat one", "re cat one", "cat two", "re cat two"],
    ]


def test_the_state_says_which_thread_and_why(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    node = select_thread_node(system, selector)
    state = talk(invoke, node, "tea one", "cat one", "tea two")
    assert state["active_thread"] == {
        "message_id": "h:tea two",
        "node_id": 5,
        "parent_id": 2,
        "reason": "continues node 2",
    }


def test_system_messages_stay(system: MemorySystem, selector: ByFirstWord, invoke: Invoke) -> None:
    node = select_thread_node(system, selector)
    told = SystemMessage("Be brief.", id="s1")
    state = invoke(node, [told, human("tea one"), ai("re tea one"), human("cat one")])
    assert said(state) == ["Be brief.", "cat one"]


def test_a_list_that_shows_its_thread_is_left_alone(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    node = select_thread_node(system, selector)
    before = talk(invoke, node, "tea one", "tea two")["messages"]
    trimmed = [*before[-2:], human("tea three")]
    update = node.invoke({"messages": trimmed}, CONFIG)
    assert "messages" not in update


def test_a_window_limits_what_is_left_in_the_list_and_not_what_is_kept(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    node = select_thread_node(system, selector, window=MessageWindow({"talk": 3}.__getitem__))
    state = talk(invoke, node, "tea one", "cat one", "tea two", "tea three")
    assert said(state) == ["tea two", "re tea two", "tea three", "re tea three"]
    invoke(store_turn_node(system), state["messages"])
    state = talk(invoke, node, "cat two")
    assert said(state) == ["cat one", "re cat one", "cat two", "re cat two"]
    invoke(store_turn_node(system), state["messages"])
    assert sorted(len(thread) for thread in texts(system.conversation("talk"))) == [4, 6]


def test_a_window_takes_no_system_message_and_no_part_of_the_turn(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    node = select_thread_node(system, selector, window=MessageWindow(1))
    told = SystemMessage("Be brief.", id="s1")
    call = AIMessage("", id="a:call", tool_calls=[{"name": "look", "args": {}, "id": "c1"}])
    found = ToolMessage("green", tool_call_id="c1", id="t:1")
    state = invoke(node, [told, human("tea one"), ai("re tea one"), human("tea two")])
    assert said(state) == ["Be brief.", "tea two"]
    state = invoke(node, [*state["messages"], call, found])
    assert said(state) == ["Be brief.", "tea two", "", "green"]


def test_a_window_leaves_a_list_alone_that_fits(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    node = select_thread_node(system, selector, window=MessageWindow(9))
    before = talk(invoke, node, "tea one", "tea two")["messages"]
    summary = HumanMessage("So far: ...", id="h0", additional_kwargs={"lc_source": "summarization"})
    update = node.invoke({"messages": [summary, *before[-2:], human("tea three")]}, CONFIG)
    assert "messages" not in update


def test_a_summary_at_the_beginning_of_a_list_is_left_alone_and_not_stored(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    node = select_thread_node(system, selector)
    before = talk(invoke, node, "tea one", "tea two")["messages"]
    summary = HumanMessage("So far: tea.", id="s", additional_kwargs={"lc_source": "summarization"})
    state = invoke(node, [summary, *before[-2:], human("tea three")])
    assert said(state) == ["So far: tea.", "tea two", "re tea two", "tea three"]
    assert "So far: tea." not in [node.message.content for node in system.conversation("talk").history]


def test_the_thread_is_shown_whole_where_the_list_holds_only_the_new_message(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    system.conversation("talk").append("tea one", "re tea one")
    state = invoke(select_thread_node(system, selector), [human("tea two")])
    assert said(state) == ["tea one", "re tea one", "tea two"]


def test_a_message_is_asked_about_once(system: MemorySystem, selector: ByFirstWord, invoke: Invoke) -> None:
    node = select_thread_node(system, selector)
    before = talk(invoke, node, "tea one", "cat one")["messages"]
    asked = [*before, human("tea two")]
    first = invoke(node, asked)
    again = invoke(node, asked)  # a replay of the same input
    assert said(first) == said(again) == ["tea one", "re tea one", "tea two"]
    assert selector.asked == ["tea one", "cat one", "tea two"]
    assert len(system.conversation("talk").history) == 5


def test_a_message_that_the_state_remembers_is_not_asked_about_again(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    node = select_thread_node(system, selector)
    first = invoke(node, [human("tea one")])
    invoke(node, first["messages"], active_thread=first["active_thread"])
    assert selector.asked == ["tea one"]


def test_an_answered_message_is_not_asked_about_again(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    node = select_thread_node(system, selector)
    invoke(store_turn_node(system), talk(invoke, node, "tea one")["messages"])
    invoke(node, [human("tea one")])
    assert selector.asked == ["tea one"]


def test_a_tool_loop_is_not_routed_again(system: MemorySystem, selector: ByFirstWord, invoke: Invoke) -> None:
    node = select_thread_node(system, selector)
    call = AIMessage("", id="a1", tool_calls=[{"name": "add", "args": {}, "id": "c1"}])
    loop = [human("tea one"), call, ToolMessage("4", id="t1", tool_call_id="c1")]
    state = invoke(node, [human("tea one")])
    state = invoke(node, [*state["messages"], *loop[1:]])
    assert state["messages"] == loop
    assert selector.asked == ["tea one"]
    assert [one.message.id for one in system.conversation("talk").thread(3)] == ["h:tea one", "a1", "t1"]


def test_a_message_stored_under_the_old_tip_is_moved(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    node = select_thread_node(system, selector)
    before = talk(invoke, node, "tea one", "cat one")["messages"]
    memory = system.conversation("talk")
    invoke(store_turn_node(system), before)
    memory.extend([human("tea two")])  # as a saver does, before the node has run
    state = invoke(node, [*before, human("tea two")])
    assert said(state) == ["tea one", "re tea one", "tea two"]
    assert texts(memory) == [["cat one", "re cat one"], ["tea one", "re tea one", "tea two"]]
    assert memory.tip is not None
    assert memory.tip.message.content == "tea two"
    invoke(node, [*before, human("tea two")])
    assert selector.asked == ["tea one", "cat one", "tea two"]


def test_the_order_of_writes_makes_no_difference(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    node = select_thread_node(system, selector)
    before = talk(invoke, node, "tea one", "cat one")["messages"]
    invoke(node, [*before, human("tea two")])
    memory = system.conversation("talk")
    memory.extend([*convert_to_messages(before), human("tea two")])  # as a saver does, after the node has run
    assert texts(memory) == [["cat one", "re cat one"], ["tea one", "re tea one", "tea two"]]


def test_two_messages_at_once_stay_together(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    node = select_thread_node(system, selector)
    before = talk(invoke, node, "tea one", "cat one")["messages"]
    state = invoke(node, [*before, human("Hello"), human("tea two")])
    assert said(state) == ["tea one", "re tea one", "Hello", "tea two"]


def test_a_repeated_message_before_a_new_message_is_stored(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    node = select_thread_node(system, selector)
    invoke(node, [HumanMessage("tea one", id="h1")])
    invoke(store_turn_node(system), [HumanMessage("tea one", id="h1"), ai("hello")])
    invoke(node, [HumanMessage("tea one", id="h2"), human("tea two")])
    assert "h2" in [node.message.id for node in system.conversation("talk").history]


def test_a_message_with_known_id_and_new_content_is_a_new_version(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    node = select_thread_node(system, selector)
    before = talk(invoke, node, "tea one", "tea two")["messages"]
    invoke(store_turn_node(system), before)
    edited = HumanMessage("tea two, please", id="h:tea two")
    state = invoke(node, [*before[:2], edited])
    assert said(state) == ["tea one", "re tea one", "tea two, please"]
    memory = system.conversation("talk")
    assert texts(memory) == [["tea one", "re tea one", "tea two, please"]]
    assert [one.message.content for one in memory.history if one.state is State.SUPERSEDED] == [
        "tea two",
        "re tea two",
    ]
    assert len(selector.asked) == 2


@pytest.mark.parametrize("saved", [False, True])
def test_a_new_version_of_a_message_stays_in_its_thread_although_the_list_is_another_thread(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke, saved: bool
) -> None:
    node = select_thread_node(system, selector)
    before = talk(invoke, node, "tea one", "cat one", "cat two", "tea two")["messages"]
    invoke(store_turn_node(system), before)
    edited = HumanMessage("cat two, please", id="h:cat two")
    memory = system.conversation("talk")
    if saved:
        invoke(store_turn_node(system), [*before, edited])  # A saver stores a list before the node has run.
    for _ in range(2):
        state = invoke(node, [*before, edited])
        assert said(state) == ["cat one", "re cat one", "cat two, please"]
        assert texts(memory) == [
            ["tea one", "re tea one", "tea two", "re tea two"],
            ["cat one", "re cat one", "cat two, please"],
        ]
    assert len(selector.asked) == 4


def test_a_new_version_of_a_message_that_was_moved_by_hand_stays_there(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    node = select_thread_node(system, selector)
    before = talk(invoke, node, "tea one", "cat one", "cat two", "tea two")["messages"]
    invoke(store_turn_node(system), before)
    given = [*before, HumanMessage("tea three", id="h:cat two")]
    memory = system.conversation("talk")
    invoke(node, given)
    edited = next(one for one in reversed(memory.history) if one.message.content == "tea three")
    memory.place(edited.id, next(one.id for one in memory.history if one.message.id == "a:re tea two"))
    state = invoke(node, given)
    assert said(state) == ["tea one", "re tea one", "tea two", "re tea two", "tea three"]


def test_a_new_version_of_a_message_stays_below_a_new_answer_that_it_follows(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    node = select_thread_node(system, selector)
    before = talk(invoke, node, "tea one", "tea two")["messages"]
    invoke(store_turn_node(system), before)
    invoke(store_turn_node(system), [before[0], AIMessage("a better one", id="a2")])
    edited = HumanMessage("tea two, please", id="h:tea two")
    state = invoke(node, [before[0], AIMessage("a better one", id="a2"), edited])
    assert said(state) == ["tea one", "a better one", "tea two, please"]


def test_a_new_version_of_an_unanswered_message_is_not_asked_about(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    node = select_thread_node(system, selector)
    invoke(node, [human("tea one")])
    state = invoke(node, [HumanMessage("cat one", id="h:tea one")])
    assert said(state) == ["cat one"]
    assert texts(system.conversation("talk")) == [["cat one"]]
    assert selector.asked == ["tea one"]


def test_a_regenerated_answer_supersedes_the_old_one(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    store = store_turn_node(system)
    talked = talk(invoke, select_thread_node(system, selector), "tea one")["messages"]
    invoke(store, talked)
    invoke(store, [*talked, human("tea two"), ai("re tea two")])
    invoke(store, [talked[0], ai("a better one")])
    memory = system.conversation("talk")
    superseded = [str(one.message.content) for one in memory.history if one.state is State.SUPERSEDED]
    assert superseded == ["re tea one"]
    assert ["tea one", "a better one"] in texts(memory)
    assert ["tea one", "re tea one", "tea two", "re tea two"] in texts(memory)


def test_a_list_from_before_is_taken_over(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    long = [message for n in range(40) for message in (human(f"tea {n}"), ai(f"re tea {n}"))]
    state = invoke(select_thread_node(system, selector), [*long, human("cat one")])
    assert said(state) == ["cat one"]
    assert [len(thread) for thread in system.conversation("talk").threads()] == [80, 1]


def test_the_first_message_that_is_routed_may_continue_a_list_from_before(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    given = [human("tea one"), ai("re tea one"), human("cat one"), ai("re cat one"), human("tea two")]
    state = invoke(select_thread_node(system, selector), given)
    assert said(state) == ["tea one", "re tea one", "tea two"]


def test_a_turn_whose_question_was_purged_is_not_routed(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    node = select_thread_node(system, selector)
    call = AIMessage("", id="a1", tool_calls=[{"name": "weather", "args": {}, "id": "c1"}])
    given = [human("tea one"), call]
    invoke(node, given[:1])
    invoke(store_turn_node(system), given)
    memory = system.conversation("talk")
    run(forget_message(memory._conversation, memory.history[0].id, purge=True), system.runtime)
    assert "active_thread" not in invoke(node, [*given, ToolMessage("sun", tool_call_id="c1", id="t1")])


def test_storing_twice_is_storing_once(system: MemorySystem, invoke: Invoke) -> None:
    store = store_turn_node(system)
    for _ in range(2):
        invoke(store, [human("tea one"), ai("re tea one")])
    assert len(system.conversation("talk").history) == 2


def test_other_conversations_and_owners_are_not_touched(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke, url: str
) -> None:
    with MemorySystem(url, owner=f"other-{uuid4()}", embeddings=WordEmbeddings()) as other:
        other.conversation("talk").append("tea of somebody else", "re tea")
        system.conversation("elsewhere").append("tea elsewhere", "re tea")
        state = invoke(select_thread_node(system, selector), [human("tea one")])
        assert said(state) == ["tea one"]
        assert len(other.conversation("talk").history) == 2
        assert len(system.conversation("elsewhere").history) == 2


def test_the_default_selector_goes_by_meaning(system: MemorySystem, invoke: Invoke) -> None:
    node = select_thread_node(system)
    state = talk(
        invoke,
        node,
        "Which green tea should I brew for breakfast tomorrow?",
        "My cat refuses the new food since Monday, any ideas?",
        "How long should I brew the green tea for breakfast?",
    )
    spoken = [message.text for message in state["messages"] if not is_block(message)]
    assert [text for text in spoken if "cat" in text] == []
    assert state["active_thread"]["reason"] != ""


def test_a_linear_selector_keeps_one_thread(system: MemorySystem, invoke: Invoke) -> None:
    state = talk(invoke, select_thread_node(system, LinearNodeSelector()), "tea one", "cat one")
    assert said(state) == ["tea one", "re tea one", "cat one", "re cat one"]


def test_a_list_without_a_human_message_is_left_alone(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    node = select_thread_node(system, selector)
    assert node.invoke({"messages": [SystemMessage("Be brief.", id="s1")]}, CONFIG) == {}


def test_a_run_without_a_conversation_is_told_what_to_pass(system: MemorySystem) -> None:
    with pytest.raises(InputError, match=r"thread_id is None; pass config="):
        select_thread_node(system).invoke({"messages": [human("tea one")]})


def test_the_conversation_may_be_named(system: MemorySystem, selector: ByFirstWord, invoke: Invoke) -> None:
    invoke(select_thread_node(system, selector, conversation_id="named"), [human("tea one")])
    by_config = select_thread_node(
        system, selector, conversation_id=lambda config: config["configurable"]["thread_id"] + "!"
    )
    invoke(by_config, [human("tea two")])
    assert system.conversations() == ["named", "talk!"]


@pytest.mark.parametrize("recall", [-1, 1.5, "4"])
def test_a_number_of_recalled_messages_that_is_none_is_refused(system: MemorySystem, recall: Any) -> None:
    with pytest.raises(InputError, match=r"recall=.* is not an integer of at least 0"):
        create_threaded_chat(FakeListChatModel(responses=["Hi!"]), system, recall=recall)


WRONG_OPTIONS: list[dict[str, Any]] = [
    {"cover": 5},
    {"cover_tokens": -4},
    {"window": 3},
    {"on_selection_failure": "ignore"},
    {"selector": 5},
]


@pytest.mark.parametrize("options", WRONG_OPTIONS, ids=str)
def test_a_node_checks_its_options_before_its_first_run(
    system: MemorySystem, options: dict[str, Any]
) -> None:
    with pytest.raises(InputError):
        select_thread_node(system, **options)
    with pytest.raises(InputError):
        ThreadMemMiddleware(system, **options)


def test_a_node_has_no_option_with_a_misspelled_name(system: MemorySystem) -> None:
    options: dict[str, Any] = {"single_root": True}
    with pytest.raises(TypeError, match="'single_root'"):
        select_thread_node(system, **options)


def test_a_message_without_an_id_gets_the_same_id_in_each_run(system: MemorySystem) -> None:
    node = select_thread_node(system)
    runs = [node.invoke({"messages": [HumanMessage("tea")]}, CONFIG)["active_thread"] for _ in range(2)]
    assert runs[0]["message_id"] == runs[1]["message_id"]
    assert texts(system.conversation("talk")) == [["tea"]]


def test_a_state_without_messages_is_refused(system: MemorySystem) -> None:
    with pytest.raises(InputError, match="no key 'chat'"):
        select_thread_node(system, messages_key="chat").invoke({"messages": []}, CONFIG)


def test_a_failing_selector_may_be_told_to_raise(system: MemorySystem) -> None:
    def fail(tree: TreeView, message: BaseMessage) -> int | None:
        raise RuntimeError("no idea")

    system.conversation("talk").append("tea one", "re tea one")
    node = select_thread_node(system, fail, on_selection_failure="raise")
    with pytest.raises(SelectionError, match="no idea"):
        node.invoke({"messages": [human("tea two")]}, CONFIG)
    assert len(system.conversation("talk").history) == 2


def test_recall_brings_what_other_threads_say_and_never_the_active_one(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    node = select_thread_node(system, selector)
    state = talk(invoke, node, "tea from Uji is the best", "cat food", "cat drinks tea from Uji")
    found = invoke(recall_node(system), state["messages"])["recalled"]
    assert found[0]["text"] in ("tea from Uji is the best", "re tea from Uji is the best")
    assert not any("cat" in one["text"] for one in found)
    assert len(system.conversation("talk").history) == 5


def test_recall_leaves_out_what_does_not_fit(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    node = select_thread_node(system, selector)
    state = talk(invoke, node, "tea from Uji", "cat food")
    assert invoke(recall_node(system), state["messages"])["recalled"] == []


def test_recall_stays_in_its_conversation_unless_told_otherwise(system: MemorySystem, invoke: Invoke) -> None:
    system.conversation("other").append("tea from Uji is the best", "Indeed.")
    invoke(store_turn_node(system), [human("tea from Uji")])
    assert invoke(recall_node(system), [human("tea from Uji")])["recalled"] == []
    found = invoke(recall_node(system, scope="owner"), [human("tea from Uji")])["recalled"]
    assert [one["conversation_id"] for one in found] == ["other"]


@pytest.mark.parametrize("patched", [True, False])
def test_a_result_behind_a_call_comes_before_what_has_followed_it(
    system: MemorySystem, invoke: Invoke, patched: bool
) -> None:
    call = AIMessage("", id="a:call", tool_calls=[{"name": "look", "args": {}, "id": "c1"}])
    result = ToolMessage("cancelled", tool_call_id="c1", id="t:1")
    memory = system.conversation("talk")
    memory.extend([human("tea one"), call, human("tea two")])  # as a saver does, before the node has run
    if patched:
        invoke(store_turn_node(system), [human("tea one"), call, result])
    node = select_thread_node(system, LinearNodeSelector())
    state = invoke(node, [human("tea one"), call, result, human("tea two")])
    assert said(state) == ["tea one", "", "cancelled", "tea two"]
    assert texts(memory) == [said(state)]


def test_a_message_after_a_result_that_was_put_behind_a_call_is_asked_about(
    system: MemorySystem, selector: ByFirstWord, invoke: Invoke
) -> None:
    call = AIMessage("", id="a:call", tool_calls=[{"name": "look", "args": {}, "id": "c1"}])
    result = ToolMessage("cancelled", tool_call_id="c1", id="t:1")
    system.conversation("talk").extend([human("tea one"), call, human("cat one")])
    invoke(store_turn_node(system), [human("tea one"), call, result])
    node = select_thread_node(system, selector)
    assert said(invoke(node, [human("tea one"), call, result, human("cat one")])) == ["cat one"]
