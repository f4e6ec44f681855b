"""The context that the middleware shows a model in agent conversations about five matters each.

An agent replays each conversation of `training/conversations/agent-*.txt`; its model and its tools return the
written texts. No weights are fitted on these conversations. The figures are computed over all calls of the
model. The baseline is an agent without memory of threads, which shows the model the whole history:

- their matter only: the share of calls where all shown messages belong to the current matter.
- turns of its matter: the share of the earlier turns of the thread that a call shows.
- tokens: the shown tokens as a share of the tokens of the whole history.

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
from langchain_threadmem.messages.quoting import is_made_up
from training.corpus import HELD_OUT, Turn, Written, written

Selector = SemanticNodeSelector | LLMNodeSelector


class Script(BaseChatModel):
    """A chat model that returns scripted messages and records its inputs."""

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
        """Queue the replies for a turn: its tool calls one by one, then its answer."""
        for n, call in enumerate(turn.calls):
            made = {"id": f"{place}-{n}", "name": call.tool, "args": json.loads(call.arguments)}
            self._says.append(AIMessage("", tool_calls=[made], id=f"{place}-call-{n}"))
        self._says.append(AIMessage(turn.answer, id=f"{place}-answer"))

    def shown(self) -> list[list[BaseMessage]]:
        """The inputs of the calls since the previous use of this method."""
        found, self._shown = self._shown, []
        return found


@dataclass
class Tally:
    """Counts over the turns and the calls of the model."""

    turns: int = 0
    right: int = 0
    calls: int = 0
    pure: int = 0
    wanted: int = 0
    held: int = 0
    tokens: int = 0
    whole: int = 0


def tools_of(one: Written) -> Iterator[BaseTool]:
    """The tools of a conversation; each returns the written results of its calls in order."""
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
    """The place of the turn that a message belongs to."""
    return int(str(getattr(message, "tool_call_id", message.id)).split("-")[0])


def places_in(message: BaseMessage, one: Written) -> set[int]:
    """The places of the turns that a message shows: its own, or those that a block quotes."""
    if not is_made_up(message):
        return {place_of(message)}
    text = " ".join(message.text.replace("&lt;", "<").split())
    return {place for place, turn in enumerate(one.turns) if " ".join(turn.human.split()) in text}


def play(one: Written, system: MemorySystem, selector: Selector, tally: Tally) -> None:
    """Replay a conversation with an agent and add to the counts."""
    model = Script()
    memory = ThreadMemMiddleware(system, selector=selector, recall=0)
    agent: Any = create_agent(model, list(tools_of(one)), middleware=[memory], checkpointer=InMemorySaver())
    oracle = selector.model if isinstance(selector, LLMNodeSelector) else None
    number: dict[int | None, int | None] = {None: None}  # numbers of the last nodes of turns, by place
    above: dict[int | None, list[int]] = {None: []}  # places on the path to a turn, itself included
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
        said = [message for message in state["messages"] if not is_made_up(message)]
        history = [message for message in said if place_of(message) < place]
        for view in model.shown():
            places = set().union(*(places_in(message, one) for message in view))
            tally.calls += 1
            tally.pure += all(one.turns[at].matter == turn.matter for at in places)
            wanted = set(above[turn.previous])
            tally.wanted += len(wanted)
            tally.held += len(wanted & places)
            tally.tokens += count_tokens_approximately(view)
            own = [message for message in view if not is_made_up(message) and place_of(message) == place]
            tally.whole += count_tokens_approximately([*history, *own])


def measure(*, words: bool = False, limit: int | None = None) -> list[Line]:
    """The lines of the table."""
    embeddings: Embeddings | Literal[False] = False if words else Remembering()
    several = [one for one in written() if one.part == HELD_OUT][:limit]
    lines = []
    selectors: dict[str, Selector] = {
        "no model asked": SemanticNodeSelector(),
        "an oracle asked": LLMNodeSelector(Oracle(), ask=ASK),
        # With `ask=1` the selector would not ask about the second message.
        "an oracle asked each time": LLMNodeSelector(Oracle(), ask=0.999),
    }
    for name, selector in selectors.items():
        tally = Tally()
        with MemorySystem(embeddings=embeddings) as system:
            for one in several:
                play(one, system, selector, tally)
        told = name
        if isinstance(selector, LLMNodeSelector):
            told += f", about {100 * selector.share_asked:.0f} % of messages"
        lines += [
            Line("agents: parent accuracy", _percent(tally.right, tally.turns), told),
            Line("agents: calls that are shown their matter only", _percent(tally.pure, tally.calls), told),
            Line("agents: turns of its matter that a call shows", _percent(tally.held, tally.wanted), told),
            Line("agents: tokens shown, of the whole history", _percent(tally.tokens, tally.whole), told),
        ]
    return lines


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):.1f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--words", action="store_true", help="by words alone, without an embedding model")
    parser.add_argument("--limit", type=int, help="the number of conversations")
    options = parser.parse_args()
    show(measure(words=options.words, limit=options.limit))


if __name__ == "__main__":
    main()
