"""Lineage of runs: a run continues messages of its own branch only."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph.message import add_messages

from langchain_threadmem import MemorySystem, select_thread_node
from langchain_threadmem.langgraph.node import store_turn_node
from langchain_threadmem.selection.tree_view import TreeView

CONFIG: RunnableConfig = {"configurable": {"thread_id": "talk"}, "metadata": {"checkpoint_id": "any"}}


class Choosing:
    """Continues the turn end at a given position, and records the offered questions."""

    def __init__(self) -> None:
        self.offered: set[str] = set()
        self.position = 0

    def select_parent(self, tree: TreeView, message: BaseMessage) -> int | None:
        ends = tree.turn_ends()
        self.offered = {end.human for end in ends}
        assert {node.message.text for _, node in tree.graph.nodes("node")} >= self.offered
        return ends[self.position % len(ends)].id if ends and self.position else None


# From which checkpoint, and which turn end is continued; or a turn that is appended by other means.
steps = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)) | st.none(), max_size=9)


@settings(max_examples=40)
@given(steps)
def test_a_run_is_offered_what_its_branch_has_seen(given_steps: list[tuple[int, int] | None]) -> None:
    selector = Choosing()
    with MemorySystem(embeddings=False) as system:
        node, store = select_thread_node(system, selector), store_turn_node(system)
        checkpoints: list[tuple[list[Any], frozenset[str]]] = [([], frozenset())]
        newest, appended = "", dict[str, str]()  # of each appended turn the one that was asked before it
        for number, step in enumerate(given_steps):
            text = f"q{number}"
            if step is None:
                system.conversation("talk").append(text, "Noted.")
                appended[text] = newest
                continue
            messages, seen = checkpoints[step[0] % len(checkpoints)]
            selector.position = step[1]
            asked = [*messages, HumanMessage(text, id=text)]
            update = node.invoke({"messages": asked}, CONFIG)
            shown = add_messages(asked, update.get("messages", []))
            answered = [*shown, AIMessage("re", id=f"re {text}")]
            store.invoke({"messages": answered}, CONFIG)
            assert selector.offered == seen | {one for one in appended if appended[one] in {"", *seen}}
            checkpoints.append((answered, seen | {text}))
            newest = text
