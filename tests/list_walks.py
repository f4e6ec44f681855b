"""The same lists of messages through every interface that stores lists, and a comparison of the results.

A walk is a list of steps: say something, edit or redact a message in place, remove messages, send the whole
list again, fork from an earlier checkpoint, answer again, insert an aside, trim, summarize, abandon a tool
call and answer it later. Each step runs

- `saver`: a graph with `select_thread_node` and `ThreadMemSaver`,
- `node`: the same graph with LangGraph's `InMemorySaver`,
- `middleware`: an agent with `ThreadMemMiddleware` and `InMemorySaver`,
- `history`: `ThreadMemChatMessageHistory.add_messages` with the list that the step leaves.

After each step the tree, the messages that the model was shown and the recalled messages are the same.

    python tests/list_walks.py --lists 10000
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count, groupby
from typing import Annotated, Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
    merge_message_runs,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from pydantic import Field

from langchain_threadmem import (
    LinearNodeSelector,
    MemorySystem,
    ThreadMemChatMessageHistory,
    ThreadMemMiddleware,
    ThreadMemSaver,
    select_thread_node,
)
from langchain_threadmem.langgraph.node import ThreadedState, store_turn_node
from langchain_threadmem.messages.quoting import is_made_up
from langchain_threadmem.selection.selectors import AnySelector
from langchain_threadmem.selection.tree_view import TreeView

Step = tuple[str, int, int]
"""The kind of a step, and two numbers that choose a message, a checkpoint or a topic."""
CONFIG: RunnableConfig = {"configurable": {"thread_id": "talk"}}
TOPICS = ("tea", "cat", "car")
LISTS = ("say", "say", "say", "call", "edit", "edit", "again", "resend", "aside", "abandon", "patch")
"""Steps that leave a list; likelier kinds occur more than once."""
KINDS = (
    *LISTS,
    "merge",
    "merge",
    "trim",
    "summarize",
    "remove",
    "remove_turn",
    "fork",
    "replay",
    "regenerate",
)
"""All steps; a history is told of no checkpoints, removals and summaries, so it takes only `LISTS`."""


def by_topic(tree: TreeView, message: BaseMessage) -> int | None:
    """Continues the newest turn on the topic of a message."""
    topic = message.text.split()[0]
    fitting = [end.id for end in tree.turn_ends() if topic in (end.human or end.answer).split()[:1]]
    return fitting[-1] if fitting else None


class Recorder(BaseChatModel):
    """Records the messages that it is shown; "weather" in a question makes it call a tool."""

    shown: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "recorder"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Recorder:
        return self

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        self.shown.append(messages)
        number, last = len(self.shown), messages[-1]
        answer = AIMessage(f"{last.text} answer{number}", id=f"a{number}")
        if last.type == "human" and "weather" in last.text:
            call = {"name": "weather", "args": {}, "id": f"c{number}"}
            answer = AIMessage("", id=f"a{number}", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=answer)])


def result_of(call_id: str) -> ToolMessage:
    return ToolMessage(f"sunny {call_id}", tool_call_id=call_id, id=f"t{call_id}")


@tool
def weather(call_id: Annotated[str, InjectedToolCallId]) -> ToolMessage:
    """The weather."""
    return result_of(call_id)


def graph_of(model: Any, system: MemorySystem, selector: AnySelector, saver: Any) -> Any:
    """A graph with the node that selects threads, and a loop of tool calls."""
    builder = StateGraph(ThreadedState)
    builder.add_node("select_thread", select_thread_node(system, selector))
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node(
        "tools",
        lambda state: {"messages": [result_of(call["id"]) for call in state["messages"][-1].tool_calls]},
    )
    builder.add_node("store_turn", store_turn_node(system))
    builder.add_edge(START, "select_thread").add_edge("select_thread", "model").add_edge("tools", "model")
    builder.add_conditional_edges(
        "model", lambda state: "tools" if state["messages"][-1].tool_calls else "store_turn"
    )
    return builder.compile(checkpointer=saver)


@dataclass
class Path:
    """An interface with a memory of its own.

    Attributes:
        name: The name of the interface.
        system: Its memory.
        model: The model of its graph.
        graph: The graph, or the agent.
        ends: The configurations of the checkpoints after the runs.
    """

    name: str
    system: MemorySystem
    model: Recorder
    graph: Any
    ends: list[RunnableConfig] = field(default_factory=list)

    def state(self) -> list[BaseMessage]:
        return list(self.graph.get_state(CONFIG).values.get("messages", []))

    def run(
        self, messages: Sequence[BaseMessage] | None, config: RunnableConfig = CONFIG, **options: Any
    ) -> None:
        self.graph.invoke(None if messages is None else {"messages": list(messages)}, config, **options)
        self.ends.append(self.graph.get_state(CONFIG).config)

    def before_model(self, number: int) -> RunnableConfig | None:
        """The checkpoint before an answer."""
        found = [
            state.config
            for state in self.graph.get_state_history(CONFIG)
            if state.next == ("model",) and state.values["messages"][-1].type == "human"
        ]
        return found[::-1][number % len(found)] if found else None


@dataclass(frozen=True)
class Seen:
    """What can be seen of a memory after a step.

    Attributes:
        tree: For each live message its text, and the id of its parent.
        past: The ids and texts of superseded messages. Asides are stored by checkpointers only.
        active: The ids of the active thread.
        recalled: For each query the ids of the recalled messages.
    """

    tree: dict[str, tuple[str, str | None]]
    past: set[tuple[str, str]]
    active: list[str]
    recalled: list[list[str]]


def seen_in(system: MemorySystem) -> Seen:
    memory = system.conversation("talk")
    history = memory.history
    ids = {node.id: str(node.message.id) for node in history}
    tree = {
        str(node.message.id): (node.message.text, None if node.parent_id is None else ids[node.parent_id])
        for node in history
        if node.state.label == "live"
    }
    past = {(str(node.message.id), node.message.text) for node in history if node.state.label == "superseded"}
    past -= {(id_, text) for id_, (text, _) in tree.items()}  # The former places of moved messages.
    recalled = [
        sorted(str(hit.node.message.id) for hit in memory.recall(query, n_results=50)) for query in TOPICS
    ]
    return Seen(tree, past, [str(message.id) for message in memory.messages], recalled)


class Walk:
    """The same steps through all paths.

    Args:
        linear: Whether each message continues the last one, or the last one on its topic.
        rewrite: Whether the agent's state is reduced to the active thread.
        durability: LangGraph's durability of the checkpoints.
    """

    def __init__(self, linear: bool = True, rewrite: bool = True, durability: str = "sync") -> None:
        selector: AnySelector = LinearNodeSelector() if linear else by_topic
        self.numbers = count(1)
        self.durability = durability
        # Whether a list lacks messages of its thread: an agent shows the thread, and a graph the list.
        self.is_cut = self.is_patched = False
        self.asides: set[str] = set()
        self.unrouted: set[int] = set()  # Model calls of runs that begin after the node that selects threads.
        self.systems = [MemorySystem(embeddings=False) for _ in range(4)]
        saver, node, middleware, _ = self.systems
        models = [Recorder() for _ in range(3)]
        memory = ThreadMemMiddleware(middleware, selector=selector, recall=0, rewrite=rewrite)
        agent = create_agent(models[2], [weather], middleware=[memory], checkpointer=InMemorySaver())
        self.paths = [
            Path("saver", saver, models[0], graph_of(models[0], saver, selector, ThreadMemSaver(saver))),
            Path("node", node, models[1], graph_of(models[1], node, selector, InMemorySaver())),
            Path("middleware", middleware, models[2], agent),
        ]
        self.selector = selector
        self.has_history = True

    def close(self) -> None:
        for system in self.systems:
            system.close()

    def said(self, topic: int, text: str = "") -> HumanMessage:
        number = next(self.numbers)
        return HumanMessage(f"{TOPICS[topic % len(TOPICS)]} {text}question{number}", id=f"h{number}")

    def step(self, kind: str, at: int, other: int) -> bool:
        """Run a step on all paths; returns whether it was possible."""
        messages = [message for message in self.paths[1].state() if not is_made_up(message)]
        given = self.given(kind, messages, at, other)
        if given is None:
            return False
        if kind in ("fork", "replay", "remove", "remove_turn", "regenerate", "summarize", "trim"):
            self.has_history = False
        if kind in ("fork", "replay") and self.is_patched:
            self.is_cut = True
        for run in (given.first, given) if given.first is not None else (given,):
            before = self.paths[1].state()
            shown = self.paths[1].model.shown
            first = len(shown)
            for path in self.paths:
                run.run(path, self.durability)
            if given.before_model is not None:
                self.unrouted.update(range(first, len(shown)))
            if self.has_history:
                self.tell(run.list_after(before))
                self.tell(self.paths[1].state())
        return True

    def tell(self, messages: Sequence[BaseMessage]) -> None:
        """Add a list to the history."""
        session = ThreadMemChatMessageHistory("talk", self.systems[3], node_selector=self.selector)
        session.add_messages(messages)

    def given(self, kind: str, messages: list[BaseMessage], at: int, other: int) -> Given | None:
        """The input of the runs of a step."""
        turns = [
            n
            for n, message in enumerate(messages)
            if message.type == "human" and message.id not in self.asides
        ]
        chosen = at % len(messages) if messages else 0
        match kind:
            case "say":
                return Given([self.said(other)])
            case "call":
                return Given([self.said(other, "weather ")])
            case "abandon":
                left = Given([self.said(other, "weather ")], interrupt_before=["tools"])
                return Given([self.said(at)], first=left)
            case "edit" if messages and not calls(messages[chosen]) and messages[chosen].type != "tool":
                words = f"{messages[chosen].text.split()[0]} ***{next(self.numbers)}"
                edited = messages[chosen].model_copy(update={"content": words})
                return Given([edited, self.said(other)])
            case "again" if turns:
                turn = turns[at % len(turns)]
                edited = messages[turn].model_copy(update={"content": f"{messages[turn].text} please"})
                return Given([*messages[:turn], edited], whole=True)
            case "resend":
                return Given([*messages, self.said(other)], whole=True)
            case "aside" if len(messages) > 1:
                aside = HumanMessage("By the way.", id=f"s{next(self.numbers)}")
                place = turns[at % len(turns)] if turns else 0
                self.asides.add(str(aside.id))
                return Given([*messages[:place], aside, *messages[place:], self.said(other)], whole=True)
            case "patch":
                self.is_patched = True  # An earlier checkpoint lacks the results.
                patched = with_results(messages)
                return None if patched == messages else Given([*patched, self.said(other)], whole=True)
            case "trim" if len(turns) > 1:
                self.is_cut = True
                turn = turns[1 + at % (len(turns) - 1)]
                first = messages[:1] if other % 2 else []
                return Given([*first, *messages[turn:], self.said(other)], whole=True)
            case "summarize" if len(turns) > 1:
                self.is_cut = True
                turn = turns[1 + at % (len(turns) - 1)]
                summary = HumanMessage(
                    "So far.", id=f"s{next(self.numbers)}", additional_kwargs={"lc_source": "summarization"}
                )
                self.asides.add(str(summary.id))
                return Given([summary, *messages[turn:], self.said(other)], whole=True)
            case "merge" if not self.asides and self.selector is not by_topic:
                merged = _merged(messages)
                if len(merged) == len(messages):
                    return Given([self.said(other), self.said(other)])
                return Given([*merged, self.said(other)], whole=True)
            case "remove" if messages and not calls(messages[chosen]) and messages[chosen].type != "tool":
                return Given([RemoveMessage(str(messages[chosen].id)), self.said(other)])
            case "remove_turn" if turns:
                turn = turns[at % len(turns)]
                end = next((n for n in turns if n > turn), len(messages))
                removed = [RemoveMessage(str(message.id)) for message in messages[turn:end]]
                return Given([*removed, self.said(other)])
            case "fork" if self.paths[1].ends:
                return Given([self.said(other)], end=at % len(self.paths[1].ends))
            case "replay" if self.paths[1].before_model(at):
                return Given(None, before_model=at)
            case "regenerate" if messages and messages[-1].type == "ai" and not calls(messages[-1]):
                return Given(None, removed=str(messages[-1].id))
            case _:
                return None

    def check(self) -> None:
        """Compare what can be seen on all paths."""
        expected, *others = (seen_in(system) for system in self.systems)
        names = ["node", "middleware", *(["history"] if self.has_history else [])]
        for name, seen in zip(names, others, strict=False):
            for aspect in ("tree", "past", "active", "recalled"):
                here, there = getattr(expected, aspect), getattr(seen, aspect)
                assert here == there, f"{aspect}: {different(here, there)} (saver, {name})"
        shown = [
            [self.spoken(view) for n, view in enumerate(path.model.shown) if n not in self.unrouted]
            for path in self.paths
        ]
        assert shown[0] == shown[1], f"shown: {shown[0][-1]} (saver), {shown[1][-1]} (node)"
        if self.is_cut:
            for cut, whole in zip(shown[1], shown[2], strict=True):
                assert is_part(cut, whole), f"shown: node {cut}, middleware {whole}"
        else:
            assert shown[1] == shown[2], f"shown: {shown[1][-1]} (node), {shown[2][-1]} (middleware)"

    def spoken(self, messages: Sequence[BaseMessage]) -> list[str]:
        """The texts and whole tool exchanges of the conversation among the messages that a model was shown.

        A prompt may join two answers, which says the same as the two.
        """
        said = [message for message in messages if not is_made_up(message) and message.id not in self.asides]
        answered = {message.tool_call_id for message in said if isinstance(message, ToolMessage)}
        parts: list[str] = []
        for message in said:
            called = [call["id"] for call in calls(message)]
            parts += filter(None, message.text.split("\n\n"))
            parts += called if answered.issuperset(called) else ()
        return parts


@dataclass(frozen=True)
class Given:
    """The input of a run.

    Attributes:
        messages: The messages; `None` to go on.
        whole: Whether the messages are the whole list, and not an addition to it.
        interrupt_before: The nodes before which the run ends.
        end: The number of the run after which the run forks.
        before_model: The number of the answer that is given again.
        removed: The id of the message that is removed before the run.
        first: The input of a run before the run.
    """

    messages: Sequence[BaseMessage] | None
    whole: bool = False
    interrupt_before: Sequence[str] = ()
    end: int | None = None
    before_model: int | None = None
    removed: str | None = None
    first: Given | None = None

    def list_after(self, before: Sequence[BaseMessage]) -> list[BaseMessage]:
        """The list with which the run begins."""
        given = list(self.messages or ())
        return given if self.whole else list(add_messages(list(before), given))  # type: ignore[arg-type]

    def run(self, path: Path, durability: str) -> None:
        config: RunnableConfig = CONFIG
        if self.removed is not None:
            path.graph.update_state(CONFIG, {"messages": [RemoveMessage(self.removed)]}, as_node="__start__")
        if self.end is not None:
            config = path.ends[self.end]
        if self.before_model is not None:
            config = path.before_model(self.before_model) or CONFIG
        messages = self.messages
        if messages is not None:
            copies = [message.model_copy(deep=True) for message in messages]
            messages = [RemoveMessage(REMOVE_ALL_MESSAGES), *copies] if self.whole else copies
        path.run(messages, config, durability=durability, interrupt_before=list(self.interrupt_before))


def calls(message: BaseMessage) -> list[Any]:
    return list(getattr(message, "tool_calls", ()))


def _merged(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """A list in which human messages that follow each other are one."""
    merged: list[BaseMessage] = []
    for is_human, run in groupby(messages, lambda message: message.type == "human"):
        found = list(run)
        merged += merge_message_runs(found) if is_human else found
    return merged


def with_results(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """A list in which each call has a result."""
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    patched: list[BaseMessage] = []
    for message in messages:
        patched += [
            message,
            *(result_of(call["id"]) for call in calls(message) if call["id"] not in answered),
        ]
    return patched


def different(here: Any, there: Any) -> Any:
    """The parts of two values that are not in both."""
    if isinstance(here, dict):
        return different(set(here.items()), set(there.items()))
    return (here - there, there - here) if isinstance(here, set) else (here, there)


def is_part(part: Sequence[Any], whole: Sequence[Any]) -> bool:
    """Whether a sequence has all items of another in their order."""
    items = iter(whole)
    return all(item in items for item in part)


def run_walk(steps: Sequence[Step], **options: Any) -> int:
    """Run a walk, and compare after each step; returns the number of lists."""
    walk, lists = Walk(**options), 0
    try:
        for kind, at, other in steps:
            if walk.step(kind, at, other):
                lists += 1
                walk.check()
    finally:
        walk.close()
    return lists


def random_walk(seed: int) -> tuple[list[Step], dict[str, Any]]:
    """The steps and the options of a walk."""
    chance = random.Random(seed)
    kinds = KINDS if seed % 3 else LISTS
    # An agent whose state is not rewritten has another list if the others leave a thread or an aside.
    same_list = seed % 2 == 0 and seed % 3 == 0
    kinds = [kind for kind in kinds if kind != "aside"] if same_list and chance.random() < 0.5 else kinds
    rewrite = "aside" in kinds
    steps = [(chance.choice(kinds), chance.randrange(40), chance.randrange(40)) for _ in range(8)]
    durability = "sync" if seed % 3 else chance.choice(["sync", "async", "exit"])
    return steps, {"linear": seed % 2 == 0, "rewrite": rewrite, "durability": durability}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lists", type=int, default=10_000, help="the number of lists to send")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    sent, unequal = 0, 0
    for seed in count(options.seed):
        steps, how = random_walk(seed)
        try:
            sent += run_walk(steps, **how)
        except Exception as error:  # the seed repeats it
            unequal += 1
            print(f"seed {seed}: {type(error).__name__} {str(error)[:300]}", flush=True)
        if sent >= options.lists:
            break
    print(f"{sent} lists, {unequal} walks with a difference")
    sys.exit(unequal > 0)


if __name__ == "__main__":
    main()
