"""The messages that a model was shown, so that a tool does not find them again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage

from langchain_threadmem.common.cache import LruCache
from langchain_threadmem.common.inputs import value_in
from langchain_threadmem.engine.runtime import Component, Runtime
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.prompt import newest_human
from langchain_threadmem.recall.results import Recollection
from langchain_threadmem.recall.versions import alike
from langchain_threadmem.selection.coverage import quoted_ids

REMEMBERED = 100
"""The number of turns whose prompts are remembered."""


class _Prompt(NamedTuple):
    """The conversation and the ids of the messages of a prompt."""

    conversation: str
    ids: frozenset[str | None]


class Prompts(Component):
    """The last prompt of each turn, by the id of the human message that opened the turn.

    The state of an agent with `ThreadMemMiddleware` contains the messages of all threads, of which its model
    is shown one, through a window.
    """

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._prompts = LruCache[str, _Prompt](REMEMBERED)

    def remember(self, turn: str, conversation: str, messages: Iterable[BaseMessage]) -> None:
        """Record the messages that a model is shown in a turn."""
        self._prompts.put(turn, _Prompt(conversation, frozenset(quoted_ids(messages, whole=True))))

    def of(self, turn: str) -> _Prompt | None:
        """The last prompt of a turn, if this process has made it."""
        return self._prompts.get(turn)

    def close(self) -> None:
        self._prompts.clear()


def messages_in(state: Any) -> Sequence[BaseMessage]:
    """The messages of the state of a graph."""
    return state if isinstance(state, list) else value_in(state, "messages") or ()


def known_in(
    runtime: Runtime, state: Any, query: str, asked: BaseMessage | None = None
) -> Callable[[Recollection], bool]:
    """A function that tells whether the model that asks has a hit already.

    The model has the query, the message that it is answering, and the messages of its prompt: those that the
    middleware has shown it in this turn, else all messages of the state.

    Args:
        state: The state of the graph that calls a tool; `None` outside of a graph.
        asked: The message that is being answered, outside of a graph.
    """
    messages = messages_in(state)
    newest = newest_human(messages)
    if newest is not None:
        asked = messages[newest]
    said = {alike(query)} | ({alike(text_of(asked))} if asked is not None else set())
    active = value_in(state, "active_thread") if state is not None else None
    prompt = runtime.get(Prompts).of(active["message_id"]) if active else None
    by_id = {message.id: message for message in messages}

    def known(hit: Recollection) -> bool:
        message = hit.node.message
        if hit.rank:
            return False
        if alike(text_of(message)) in said:
            return True
        if prompt is not None:
            return hit.conversation_id == prompt.conversation and message.id in prompt.ids
        # Ids of other conversations may be the same numbers.
        own = by_id.get(message.id)
        return own is not None and text_of(own) == text_of(message)

    return known
