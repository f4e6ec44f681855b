"""Lists of messages, whatever interface they come through and whatever their order."""

from __future__ import annotations

import random
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from list_walks import random_walk, run_walk

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
