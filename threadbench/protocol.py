"""The protocol: a conversation is played turn by turn, in a tree that the selector builds."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple, Protocol

from langchain_core.embeddings import Embeddings
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from langchain_threadmem import MemorySystem
from langchain_threadmem.langgraph.node import ThreadedState
from langchain_threadmem.selection.selectors import AnySelector
from threadbench.cost import Cost, covers
from threadbench.data import Conversation, messages_of, turns_of


class Place(NamedTuple):
    """The place of a message.

    Attributes:
        parent: Id of the message that it continues; `None` if it begins a thread.
        shown: The messages that a model would be shown before it.
    """

    parent: str | None
    shown: Sequence[BaseMessage]


class Player(Protocol):
    """A conversation in which a selector places messages."""

    def ask(self, message: BaseMessage) -> Place:
        """Add a human message."""

    def answer(self, messages: Sequence[BaseMessage]) -> None:
        """Add the answer to the message, with tool calls and their results."""


@dataclass(slots=True)
class Counts:
    """Counts of one or more conversations.

    The first message of a conversation counts as a message and not as a root, since it cannot be wrong.

    Attributes:
        messages: Human messages; `right` are those whose parent is right.
        continued: Messages that continue the turn before them; `continued_right` likewise.
        returns: Messages that continue the end of another thread.
        branches: Messages that continue a turn that has been continued already.
        roots: Messages that begin a thread.
        opened: Messages for which the selector began a thread.
        follow_ups: Messages that continue an earlier one; `covered` are those for which it is shown.
        shown: Characters that a model is shown before each message.
        history: Characters of all earlier messages, before each message.
        conversations: Conversations; `whole` are those with every parent right.
        price_10: Words of all prompts, of which those that a provider has cached count a tenth, see `cost`;
            `full_price_10` is that of prompts with the whole history.
        price_50: The same with a half; `full_price_50` likewise.
    """

    messages: int = 0
    right: int = 0
    continued: int = 0
    continued_right: int = 0
    returns: int = 0
    returns_right: int = 0
    branches: int = 0
    branches_right: int = 0
    roots: int = 0
    roots_right: int = 0
    opened: int = 0
    follow_ups: int = 0
    covered: int = 0
    shown: int = 0
    history: int = 0
    conversations: int = 0
    whole: int = 0
    price_10: float = field(default=0.0, compare=False)
    full_price_10: float = field(default=0.0, compare=False)
    price_50: float = field(default=0.0, compare=False)
    full_price_50: float = field(default=0.0, compare=False)


COUNTS = tuple(one.name for one in fields(Counts))


class MemoryPlayer:
    """A player that uses a selector, in a conversation of `MemorySystem`.

    Args:
        system: The system, which stores the conversation.
        name: Name of the conversation.
        selector: A function of tree and message, or an object with `select_parent`.
    """

    def __init__(self, system: MemorySystem, name: str, selector: AnySelector) -> None:
        self._memory = system.conversation(name, node_selector=selector, on_selection_failure="raise")
        self._ids: dict[int | None, str | None] = {None: None}

    def ask(self, message: BaseMessage) -> Place:
        [node] = self._memory.append(message)
        self._ids[node.id] = message.id
        return Place(self._ids[node.parent_id], self._memory.messages[:-1])

    def answer(self, messages: Sequence[BaseMessage]) -> None:
        nodes = self._memory.append(*messages)
        self._ids |= {node.id: message.id for node, message in zip(nodes, messages, strict=True)}


class NodePlayer:
    """A player that uses a LangGraph node, in a graph of this node and a node in the place of the model.

    A model would be shown the list `messages` that the node leaves in the state. The newest message
    continues the message before it in this list, unless the node sets the state key `active_thread`, as
    `select_thread_node` does: then it continues `active_thread["parent_id"]`, a number of a node, the id of a
    message, or `None`.

    Args:
        name: The `thread_id` of the graph.
        node: A runnable or a function of the state.
    """

    def __init__(self, name: str, node: Runnable[Any, Any] | Callable[..., Any]) -> None:
        self._seen: list[BaseMessage] = []
        self._config: Any = {"configurable": {"thread_id": name}}
        self._numbers: list[int] = []
        self._ends: list[str | None] = []
        builder = StateGraph(ThreadedState)
        builder.add_node("select", node)
        builder.add_node("look", self._look)
        builder.add_edge(START, "select").add_edge("select", "look").add_edge("look", END)
        self._graph: Any = builder.compile(checkpointer=InMemorySaver())

    def _look(self, state: ThreadedState) -> dict[str, Any]:
        self._seen = list(state["messages"])
        return {}

    def ask(self, message: BaseMessage) -> Place:
        state = self._graph.invoke({"messages": [message]}, self._config)
        if message.id not in [one.id for one in self._seen]:
            raise ValueError(
                "the node has removed the newest message from `messages`; a model could not answer it"
            )
        at = [one.id for one in self._seen].index(message.id)
        shown = [one for one in self._seen[:at] if one.type != "system"]
        thread = state.get("active_thread")
        if thread is None:
            return Place(shown[-1].id if shown else None, shown)
        self._numbers.append(thread.get("node_id", 0))
        parent: int | str | None = thread["parent_id"]
        if isinstance(parent, int):  # Node numbers increase with time, turn by turn.
            parent = self._ends[bisect_right(self._numbers, parent) - 1]
        return Place(parent, shown)

    def answer(self, messages: Sequence[BaseMessage]) -> None:
        self._graph.update_state(self._config, {"messages": list(messages)}, as_node="look")
        self._ends.append(messages[-1].id)


def play(conversation: Conversation, player: Player) -> Counts:
    """Play a conversation: each message is added, placed and compared with its true place, then answered.

    The player never receives the true parent, and its tree keeps wrong choices.
    """
    counts = Counts(conversations=1)
    continued: set[str | None] = set()
    said: dict[str | None, tuple[str, str]] = {}
    cost, full_cost, everything = Cost(), Cost(), list[BaseMessage]()
    history, last = 0, None
    for place, rows in enumerate(turns_of(conversation)):
        human, *answers = messages_of(rows)
        parent, shown = player.ask(human)
        everything.append(human)
        cost.add([*shown, human])
        full_cost.add(everything)
        everything += answers
        true = rows[0]["parent"]
        right = parent == true
        counts.messages += 1
        counts.right += right
        if place:
            counts.opened += parent is None
            if true is None:
                kind = "roots"
            elif true in continued:
                kind = "branches"
            else:
                kind = "continued" if true == last else "returns"
            for name, more in ((kind, 1), (f"{kind}_right", right)):
                setattr(counts, name, getattr(counts, name) + more)
        if true is not None:
            counts.follow_ups += 1
            counts.covered += true in {one.id for one in shown} or covers(shown, *said[true])
        counts.shown += sum(len(one.text) for one in shown)
        counts.history += history
        history += sum(len(row["content"]) for row in rows)
        player.answer(answers)
        said.update({row["id"]: (rows[0]["content"], row["content"]) for row in rows})
        continued.add(true)
        last = rows[-1]["id"]
    counts.whole += counts.right == counts.messages
    counts.price_10, counts.full_price_10 = cost.at(0.1), full_cost.at(0.1)
    counts.price_50, counts.full_price_50 = cost.at(0.5), full_cost.at(0.5)
    return counts


@dataclass(frozen=True)
class Contestant:
    """A selector or a node by its name in the tables.

    Attributes:
        name: The name.
        make: Makes the selector, or the node, for a conversation.
        is_node: Whether it is a LangGraph node.
        embeddings: The embedding model of the memory; `False` for words alone.
    """

    name: str
    make: Callable[[Conversation], Any]
    is_node: bool = False
    embeddings: Embeddings | Literal[False] | None = False


def run(
    contestant: Contestant,
    several: Sequence[Conversation],
    progress: Callable[[Conversation], object] = lambda one: None,
) -> list[Counts]:
    """The counts of a contestant for each conversation."""
    found = []
    with MemorySystem(embeddings=contestant.embeddings) as system:
        for one in several:
            made = contestant.make(one)
            player: Player = (
                NodePlayer(one["id"], made) if contestant.is_node else MemoryPlayer(system, one["id"], made)
            )
            found.append(play(one, player))
            progress(one)
    return found
