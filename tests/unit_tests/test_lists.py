"""Lists of messages, whatever interface they come through and whatever their order."""

from __future__ import annotations

import random
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from list_walks import Step, Walk, random_walk, run_walk, seen_in

from langchain_threadmem import MemorySystem, ThreadMemSaver
from langchain_threadmem.langgraph.node import store_turn_node

CALL = AIMessage("", id="a1", tool_calls=[{"name": "weather", "args": {}, "id": id_} for id_ in ("c1", "c2")])
SAID = [
    HumanMessage("And the weather?", id="h1"),
    CALL,
    ToolMessage("Sunny.", tool_call_id="c1", id="t1"),
    ToolMessage("Warm.", tool_call_id="c2", id="t2"),
    AIMessage("It is sunny and warm.", id="a2"),
    HumanMessage("Thank you", id="h2"),
    AIMessage("You are welcome.", id="a3"),
    HumanMessage("And tomorrow?", id="h3"),
    AIMessage("Rain.", id="a4"),
]


class Lists:
    """Passes lists to a saver, or to the node that stores turns."""

    def __init__(self, system: MemorySystem, *, to_saver: bool) -> None:
        self._saver = ThreadMemSaver(system) if to_saver else None
        self._node = store_turn_node(system)
        self._at: RunnableConfig = {"configurable": {"thread_id": "talk", "checkpoint_ns": ""}}
        self._number = 0

    def store(self, messages: list[BaseMessage]) -> None:
        if self._saver is None:
            self._node.invoke({"messages": messages}, {"configurable": {"thread_id": "talk"}})
            return
        self._number += 1
        checkpoint = empty_checkpoint() | {
            "id": str(uuid6()),
            "channel_versions": {"messages": self._number},
            "channel_values": {"messages": messages},
        }
        self._at = self._saver.put(self._at, checkpoint, {}, {"messages": self._number})
        found = self._saver.get_tuple(self._at)
        assert found is not None
        assert found.checkpoint["channel_values"]["messages"] == messages


@pytest.mark.parametrize("seed", range(6))
def test_the_same_lists_are_the_same_tree_through_every_interface(seed: int) -> None:
    steps, options = random_walk(seed)
    assert run_walk(steps, **options) > 0


@pytest.mark.parametrize(
    ("linear", "steps", "parent"),
    [
        pytest.param(
            False,
            [("say", 0, 2), ("say", 0, 2), ("again", 0, 0), ("edit", 0, 0), ("resend", 0, 2)],
            ("h5", "a3"),
            id="a question continues the new answer to an edited question",
        ),
        pytest.param(
            False,
            [("resend", 0, 1), ("call", 0, 2), ("say", 0, 1), ("again", 0, 0), ("say", 0, 2)],
            ("h4", "a3"),
            id="a question after an edited one continues another thread, which began later",
        ),
        pytest.param(
            False,
            [("abandon", 0, 0), ("abandon", 0, 1), ("edit", 3, 2), ("remove_turn", 0, 0), ("replay", 3, 0)],
            ("a4", None),
            id="another answer to a redacted question supersedes the first",
        ),
        pytest.param(
            True,
            [("abandon", 0, 0), ("regenerate", 0, 0), ("replay", 0, 0), ("resend", 0, 0), ("fork", 1, 0)],
            ("h4", "a3"),
            id="a fork after a removed answer continues the answer in its place",
        ),
        pytest.param(
            True,
            [("say", 0, 0), ("regenerate", 0, 0), ("aside", 0, 0), ("fork", 0, 0)],
            ("h4", "a2"),
            id="a fork after a removed answer continues the answer in its place, not the newest thread",
        ),
        pytest.param(
            True,
            [("abandon", 0, 0), ("patch", 0, 0), ("replay", 1, 0), ("remove_turn", 1, 0)],
            ("h4", "tc1"),
            id="a question continues the result of a call that its list lacks",
        ),
        pytest.param(
            True,
            [
                ("call", 0, 0),
                ("say", 0, 0),
                ("abandon", 0, 0),
                ("fork", 3, 0),
                ("again", 2, 0),
                ("fork", 3, 0),
            ],
            ("h6", "a5"),
            id="a fork before an edited question continues the turns after its former version",
        ),
        pytest.param(
            True,
            [("abandon", 0, 0), ("remove", 2, 0), ("patch", 0, 0)],
            ("a2", "tc1"),
            id="a result put after its call is above an answer whose question was removed",
        ),
        pytest.param(
            True,
            [("resend", 0, 0), ("edit", 0, 0), ("trim", 0, 1), ("edit", 0, 0)],
            ("h6", "a3"),
            id="a question after a redacted one, whose answer was trimmed, continues the end of its list",
        ),
        pytest.param(
            True,
            [
                ("resend", 0, 0),
                ("regenerate", 0, 0),
                ("resend", 0, 0),
                ("again", 0, 0),
                ("call", 0, 0),
                ("edit", 0, 0),
                ("fork", 0, 0),
                ("fork", 2, 0),
            ],
            ("h7", "a3"),
            id="a fork after a fork continues the end of its list",
        ),
        pytest.param(
            True,
            [
                ("resend", 0, 0),
                ("call", 0, 0),
                ("remove_turn", 0, 0),
                ("remove_turn", 0, 0),
                ("edit", 1, 0),
                ("resend", 0, 0),
                ("replay", 2, 0),
                ("again", 0, 0),
            ],
            ("h2", "a8"),
            id="an edited question is a new one if the question was removed",
        ),
    ],
)
def test_a_list_is_the_same_tree_through_every_interface_where(
    linear: bool, steps: list[Step], parent: tuple[str, str | None]
) -> None:
    walk = Walk(linear=linear)
    try:
        for step in steps:
            assert walk.step(*step)
            walk.check()
        message, expected = parent
        assert seen_in(walk.systems[0]).tree.get(message, ("", None))[1] == expected
    finally:
        walk.close()


@pytest.mark.parametrize("to_saver", [True, False])
def test_a_message_redacted_in_a_trimmed_list_is_redacted_in_its_thread(
    system: MemorySystem, to_saver: bool
) -> None:
    talk = [
        HumanMessage("My key is 1234", id="h1"),
        AIMessage("Noted.", id="a1"),
        HumanMessage("Good night", id="h2"),
        AIMessage("Sleep well.", id="a2"),
    ]
    lists = Lists(system, to_saver=to_saver)
    lists.store(talk)
    lists.store([HumanMessage("My key is ***", id="h1"), *talk[2:]])
    memory = system.conversation("talk")
    assert [message.text for message in memory.messages] == [
        "My key is ***",
        "Noted.",
        "Good night",
        "Sleep well.",
    ]
    assert not any("1234" in node.message.text for node in memory.history)


@pytest.mark.parametrize("to_saver", [True, False])
def test_lists_in_any_order_with_any_edits_make_a_sound_tree(system: MemorySystem, to_saver: bool) -> None:
    chance = random.Random(7)
    lists = Lists(system, to_saver=to_saver)
    current = list(SAID)
    for _ in range(24):
        match chance.randrange(4):
            case 0:
                current = SAID[: chance.randrange(1, len(SAID) + 1)]
            case 1:
                current = chance.sample(current, len(current))
            case 2:
                current = chance.sample(SAID, chance.randrange(1, len(SAID)))
            case _:
                current = sorted(current, key=lambda message: str(message.id))
        current = [edited(message, chance) for message in current]
        lists.store(current)
        assert system.conversation("talk").verify().ok


def edited(message: BaseMessage, chance: random.Random) -> BaseMessage:
    if chance.random() < 0.8 or (isinstance(message, AIMessage) and message.tool_calls):
        return message
    return message.model_copy(update={"content": f"{message.text} {chance.randrange(3)}"})


@pytest.mark.parametrize("to_saver", [True, False])
def test_a_late_result_that_a_list_puts_behind_its_call_makes_no_circle(
    system: MemorySystem, to_saver: bool
) -> None:
    lists = Lists(system, to_saver=to_saver)
    question, call, first, second, *_ = SAID
    following = HumanMessage("Never mind", id="h4")
    lists.store([question, call, following])
    lists.store([question, call, following, first, second])  # The results come after the next message.
    lists.store([question, call, first, second, following])
    lists.store([question, call, second, first, following])
    memory = system.conversation("talk")
    assert memory.verify().ok
    history: list[Any] = [(node.message.id, node.state.label) for node in memory.history]
    assert sorted(history) == [(id_, "live") for id_ in ("a1", "h1", "h4", "t1", "t2")]
