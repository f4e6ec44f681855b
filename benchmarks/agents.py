"""What a model is shown in conversations of agents with tools, five matters each, through the middleware.

Each conversation of `training/conversations/agent-*.txt` is played by an agent whose model and tools say what
is written there. Nothing is ever fitted on them. Of every call of the model, beside an agent without memory
of threads, which shows it everything:

- its matter only: all messages that it is shown are of the matter at hand.
- of its matter: how much of what was said about the matter before it is shown.
- tokens: what it is shown, beside the whole history.

    python -m benchmarks.agents [--words] [--limit 3]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from langchain.agents import create_agent
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import PrivateAttr

from benchmarks._measure import Line, show
from benchmarks.threads import ASK, Oracle, Remembering
from langchain_threadmem import LLMNodeSelector, MemorySystem, SemanticNodeSelector, ThreadMemMiddleware
from training.corpus import HELD_OUT, Turn, Written, written

Selector = SemanticNodeSelector | LLMNodeSelector


class Script(BaseChatModel):
    """Says what is written, and keeps what it was shown."""

    _says: list[AIMessage] = PrivateAttr(default_factory=list)
    _shown: list[list[BaseMessage]] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **options: Any) -> Script:
        return self

    def _generate(self, messages: list[BaseMessage], *arguments: Any, **options: Any) -> ChatResult:
        self._shown.append(messages)
        return ChatResult(generations=[ChatGeneration(message=self._says.pop(0))])

    def learn(self, place: int, turn: Turn) -> None:
        """Say this next: the calls of a turn one by one, then its answer."""
        for n, call in enumerate(turn.calls):
            made = {"id": f"{place}-{n}", "name": call.tool, "args": json.loads(call.arguments)}
            self._says.append(AIMessage("", tool_calls=[made], id=f"{place}-call-{n}"))
        self._says.append(AIMessage(turn.answer, id=f"{place}-answer"))

    def shown(self) -> list[list[BaseMessage]]:
        """What the calls since the last look were shown."""
        found, self._shown = self._shown, []
        return found


@dataclass
class Tally:
    """Counts over the calls of the model."""

    turns: int = 0
    right: int = 0
    calls: int = 0
    pure: int = 0
    wanted: int = 0
    held: int = 0
    tokens: int = 0
    whole: int = 0


def tools_of(one: Written) -> Iterator[BaseTool]:
    """The tools of a conversation; each returns what is written of its calls, in their order."""
    results: dict[str, list[str]] = {}
    for turn in one.turns:
        for call in turn.calls:
            results.setdefault(call.tool, []).append(call.result)
    for name, left in results.items():
        yield StructuredTool.from_function(
            lambda left=left, **arguments: left.pop(0),
            name=name,
            description=name,
            args_schema={"type": "object", "properties": {}, "additionalProperties": True},
        )


def place_of(message: BaseMessage) -> int:
    """The place of the turn that a message is of."""
    return int(str(getattr(message, "tool_call_id", message.id)).split("-")[0])


def play(one: Written, system: MemorySystem, selector: Selector, tally: Tally) -> None:
    """Let an agent have the conversation."""
    model = Script()
    memory = ThreadMemMiddleware(system, selector=selector, recall=0)
    agent: Any = create_agent(model, list(tools_of(one)), middleware=[memory], checkpointer=InMemorySaver())
    oracle = selector.model if isinstance(selector, LLMNodeSelector) else None
    number: dict[int | None, int | None] = {None: None}  # of the node that ends a turn, by the turn's place
    above: dict[int | None, list[int]] = {None: []}  # places of the turns that lead to one, itself included
    conversation = system.conversation(one.name)
    for place, turn in enumerate(one.turns):
        model.learn(place, turn)
        if isinstance(oracle, Oracle):
            oracle.right = number[turn.previous]
        config = {"configurable": {"thread_id": one.name}}
        state = agent.invoke({"messages": [HumanMessage(turn.human, id=f"{place}-human")]}, config)
        chosen = state["active_thread"]["parent_id"]
        tally.turns += 1
        tally.right += chosen == number[turn.previous]
        tip = conversation.tip
        number[place] = None if tip is None else tip.id
        above[place] = [*above[turn.previous], place]
        history = [message for message in state["messages"] if place_of(message) < place]
        for view in model.shown():
            places = {place_of(message) for message in view}
            tally.calls += 1
            tally.pure += all(one.turns[at].matter == turn.matter for at in places)
            wanted = set(above[turn.previous])
            tally.wanted += len(wanted)
            tally.held += len(wanted & places)
            tally.tokens += count_tokens_approximately(view)
            own = [message for message in view if place_of(message) == place]
            tally.whole += count_tokens_approximately([*history, *own])


def measure(*, words: bool = False, limit: int | None = None) -> list[Line]:
    """The lines of the table."""
    embeddings: Embeddings | Literal[False] = False if words else Remembering()
    several = [one for one in written() if one.part == HELD_OUT][:limit]
    lines = []
    selectors: dict[str, Selector] = {
        "no model asked": SemanticNodeSelector(),
        "an oracle asked": LLMNodeSelector(Oracle(), ask=ASK),
        # At 1 it would not be asked about the second message.
        "an oracle asked each time": LLMNodeSelector(Oracle(), ask=0.999),
    }
    for name, selector in selectors.items():
        tally = Tally()
        with MemorySystem(embeddings=embeddings) as system:
            for one in several:
                play(one, system, selector, tally)
        told = name
        if isinstance(selector, LLMNodeSelector):
            told += f", about {100 * selector.share_asked:.0f} %"
        lines += [
            Line("agents: parent accuracy", _percent(tally.right, tally.turns), told),
            Line("agents: calls that are shown their matter only", _percent(tally.pure, tally.calls), told),
            Line("agents: of its matter, a call is shown", _percent(tally.held, tally.wanted), told),
            Line("agents: tokens shown, of the whole history", _percent(tally.tokens, tally.whole), told),
        ]
    return lines


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):.1f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--words", action="store_true", help="by words alone, without an embedding model")
    parser.add_argument("--limit", type=int, help="how many conversations")
    options = parser.parse_args()
    show(measure(words=options.words, limit=options.limit))


if __name__ == "__main__":
    main()
