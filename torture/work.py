"""Random writes to a memory, each reported before and after, and a check that nothing reported was lost."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph

from langchain_threadmem import ChatMemory, ConversationNode, MemorySystem, ThreadMemSaver, ThreadMemStore
from langchain_threadmem.apps.transfer.convert import convert
from langchain_threadmem.errors import PersistenceError
from torture.children import Report
from torture.tally import Tally

VERBS = ("append", "aappend", "graph", "agraph", "put", "erase")
ITEMS = ("items",)
TOGETHER = 4
"""The number of turns that an event loop appends at once."""


@dataclass
class Conversation:
    """What is known of a conversation: turns that were begun, that were acknowledged, and its erasing."""

    begun: set[str] = field(default_factory=set)
    acknowledged: set[str] = field(default_factory=set)
    erasing: bool = False
    erased: bool = False


@dataclass
class Ledger:
    """What the children of one database and owner have reported: the independent model of the database."""

    conversations: dict[str, Conversation] = field(default_factory=dict)
    items: set[str] = field(default_factory=set)

    @property
    def is_kept(self) -> bool:
        """Whether something was acknowledged that was not erased."""
        return bool(self.items) or any(
            known.acknowledged and not known.erasing for known in self.conversations.values()
        )

    def take(self, lines: Iterable[list[Any]], tally: Tally) -> None:
        """Record the lines of a child."""
        for word, *values in lines:
            if word == "problem":
                tally.add(values[0], example=values[1])
            elif word in ("begin", "done"):
                self._record(word == "done", *values)
                tally.add("acknowledged", int(word == "done"))

    def _record(self, done: bool, verb: str, name: str, turn: str) -> None:
        if verb == "put":
            if done:
                self.items.add(turn)
            return
        conversation = self.conversations.setdefault(name, Conversation())
        if verb == "erase":
            conversation.erasing, conversation.erased = True, conversation.erased or done
        else:
            (conversation.acknowledged if done else conversation.begun).add(turn)


def question(turn: str) -> HumanMessage:
    return HumanMessage(f"What came of {turn}? {'It was long ago. ' * 20}", id=f"q-{turn}")


def answer(turn: str) -> AIMessage:
    return AIMessage(f"{turn} was stored and will be found again. {'That is known. ' * 20}", id=f"a-{turn}")


def config_of(name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": name}}


def answers(state: MessagesState) -> dict[str, Any]:
    return {"messages": [answer(str(state["messages"][-1].id).removeprefix("q-"))]}


BUILDER = StateGraph(MessagesState).add_node("model", answers).add_edge(START, "model")


class Work:
    """Random verbs of one process.

    Args:
        system: The memory.
        report: Tells the parent what is begun and done.
        life: A name that no other process has.
        random_: The choices.
        shares_graphs: Whether processes take turns in one thread of a graph. Of two runs that LangGraph makes
            in one thread at the same time, the state has one, as with any saver.
    """

    def __init__(
        self,
        system: MemorySystem,
        report: Report,
        life: str,
        random_: random.Random,
        shares_graphs: bool = True,
    ) -> None:
        self.system = system
        self.report = report
        self._life = life
        self.random = random_
        self._shares_graphs = shares_graphs
        self._count = 0
        self._graph = BUILDER.compile(checkpointer=ThreadMemSaver(system))
        self._store = ThreadMemStore(system)
        self._ours: list[str] = []

    def sibling(self, name: str) -> Work:
        """The work of another thread or process on the same memory."""
        return Work(
            self.system, self.report, f"{self._life}{name}", random.Random(self.random.random()), False
        )

    def step(self, *verbs: str) -> None:
        """One random verb; an error of the package is not acknowledged, any other error is raised."""
        verb = self.random.choice(verbs or VERBS)
        getattr(self, verb)()

    def forever(self) -> None:
        while True:
            self.step()

    def _turn(self) -> str:
        self._count += 1
        return f"t{self._life}x{self._count}"

    def _name(self, kind: str) -> str:
        """A conversation that all processes share, or one of this process."""
        shared = kind == "memory" or self._shares_graphs
        name = f"{kind}-{self.random.choice(['all', self._life] if shared else [self._life])}"
        if name not in self._ours:
            self._ours.append(name)
        return name

    def append(self, name: str | None = None) -> None:
        name, turn = name or self._name("memory"), self._turn()
        self.report("begin", "append", name, turn)
        self.system.conversation(name).append(question(turn), answer(turn))
        self.report("done", "append", name, turn)

    def aappend(self) -> None:
        async def append(memory: ChatMemory, name: str, turn: str) -> None:
            self.report("begin", "append", name, turn)
            await memory.aappend(question(turn), answer(turn))
            self.report("done", "append", name, turn)

        async def main() -> None:
            name = self._name("memory")
            memory = self.system.conversation(name)
            found = await asyncio.gather(
                *(append(memory, name, self._turn()) for _ in range(TOGETHER)), return_exceptions=True
            )
            for error in found:
                if error is not None:
                    raise error

        asyncio.run(main())

    def graph(self) -> None:
        name, turn = self._name("graph"), self._turn()
        self.report("begin", "graph", name, turn)
        self._graph.invoke({"messages": [question(turn)]}, config_of(name))
        self.report("done", "graph", name, turn)

    def agraph(self) -> None:
        name, turn = self._name("graph"), self._turn()
        self.report("begin", "graph", name, turn)
        asyncio.run(self._graph.ainvoke({"messages": [question(turn)]}, config_of(name)))
        self.report("done", "graph", name, turn)

    def erase(self) -> None:
        """Erase a conversation of this process; it is not used again."""
        own = [name for name in self._ours if name.endswith(self._life)]
        if not own:
            return
        name = self.random.choice(own)
        self._ours.remove(name)
        self.report("begin", "erase", name, "")
        self._life += "e"  # The names of this process are new from here on, also if the erasing is cut off.
        self.system.erase(conversation=name)
        self.report("done", "erase", name, "")

    def put(self) -> None:
        turn = self._turn()
        self.report("begin", "put", "", turn)
        self._store.put(ITEMS, turn, {"turn": turn})
        self.report("done", "put", "", turn)


Finding = tuple[str, str]
"""A column of the table, and what was found."""


def check(system: MemorySystem, ledger: Ledger, random_: random.Random) -> list[Finding]:
    """Read everything again: what is lost or half written, and what `verify` says of it."""
    found: list[Finding] = []
    for name, known in ledger.conversations.items():
        try:
            found += _conversation(system, name, known)
        except PersistenceError as error:
            found.append(("lost", f"{name} cannot be read: {error}"))
    items = {item.key for item in ThreadMemStore(system).search(ITEMS, limit=1_000_000)}
    found += [("lost", f"item {item}") for item in sorted(ledger.items - items)]
    found += _recalled(system, ledger, random_)
    if not found:
        found += [("false alarms", problem) for problem in system.verify().problems]
    return found


def _conversation(system: MemorySystem, name: str, known: Conversation) -> list[Finding]:
    memory = system.conversation(name)
    is_graph = name.startswith("graph")
    listed = []
    if is_graph or known.erased:
        # First the state: a server may commit the last write of a killed process between the two.
        state = ThreadMemSaver(system).get_tuple(config_of(name))
        listed = [] if state is None else state.checkpoint["channel_values"].get("messages", [])
    history = memory.history
    stored = {str(node.message.id): node.message for node in history}
    if known.erased and (stored or listed):
        return [("lost", f"the erasing of {name}, which can be read again")]
    if known.erasing and not stored:
        return []
    listed_ids = {str(message.id) for message in listed}
    return _turns(name, known, stored, _questions(history), listed_ids, is_graph)


def _questions(history: Sequence[ConversationNode]) -> dict[str, str]:
    """The ids of messages and of those they answer."""
    ids = {node.id: str(node.message.id) for node in history}
    return {str(node.message.id): ids.get(node.parent_id or 0, "") for node in history}


def _turns(
    name: str,
    known: Conversation,
    stored: dict[str, BaseMessage],
    parents: dict[str, str],
    listed: set[str],
    is_graph: bool,
) -> list[Finding]:
    found: list[Finding] = []
    for turn in sorted(known.acknowledged):
        whole = [question(turn), answer(turn)]
        ids = [str(message.id) for message in whole]
        if any(
            id not in stored or stored[id].content != said.content
            for id, said in zip(ids, whole, strict=True)
        ):
            found.append(("lost", f"turn {turn} of {name}"))
        elif parents[ids[1]] != ids[0]:
            found.append(("half", f"the answer of turn {turn} of {name} is not below its question"))
        elif is_graph and not listed.issuperset(ids):
            found.append(("lost", f"turn {turn} of the state of {name}"))
    if is_graph:
        return found + [("half", f"{id} of the checkpoint of {name}") for id in sorted(listed - set(stored))]
    return found + [
        ("half", f"turn {turn} of {name}")
        for turn in sorted(known.begun - known.acknowledged)
        if (f"q-{turn}" in stored) != (f"a-{turn}" in stored)
    ]


def _recalled(system: MemorySystem, ledger: Ledger, random_: random.Random) -> list[Finding]:
    """Whether recall by words finds one of the acknowledged turns."""
    turns = [
        (name, turn)
        for name, known in ledger.conversations.items()
        if not known.erasing
        for turn in sorted(known.acknowledged)
    ]
    if not turns:
        return []
    name, turn = random_.choice(turns)
    hits = system.conversation(name).recall(turn, n_results=5)
    is_found = any(turn in str(hit.node.message.content) for hit in hits)
    return [] if is_found else [("lost", f"recall does not find turn {turn} of {name}")]


def check_copy(url: str, owner: str, ledger: Ledger, random_: random.Random) -> list[Finding]:
    """`check` of a copy of the memory of an owner."""
    with tempfile.TemporaryDirectory(prefix="threadmem-torture-") as folder:
        target = Path(folder) / "copy.db"
        convert(url, target, owner=owner)
        with MemorySystem(target, owner=owner, embeddings=False) as system:
            return check(system, ledger, random_)
