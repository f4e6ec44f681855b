"""A drop-in for `RunnableWithMessageHistory`: LangChain's chat history interface over a `ChatMemory`.

LangChain reads the history before it shows the input to anyone, and counts what it read when it stores the
turn. So what this object has shown stays as it was until the turn is stored, whoever else writes meanwhile,
and a linear conversation continues from there: two calls at once become two threads, and neither is lost.

Both `RunnableWithMessageHistory` and `BaseChatMessageHistory` are deprecated in LangChain; new programs pass
a checkpointer to LangGraph instead. Their warnings are LangChain's to give, so importing this module gives
none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, Unpack

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage
from langchain_core.runnables import ensure_config

from langchain_threadmem.chat_memory import ChatMemory, ConversationOptions
from langchain_threadmem.engine.flow import Flow, arun, averb, run, verb
from langchain_threadmem.integrations._system import check_owner, check_system, shared_system
from langchain_threadmem.memory_system import MemorySystem
from langchain_threadmem.messages.ids import check_name
from langchain_threadmem.removal import reset
from langchain_threadmem.threads import append
from langchain_threadmem.tree import read
from langchain_threadmem.tree.append import TIP, Parent
from langchain_threadmem.tree.read import Seen


class ThreadMemChatMessageHistory(BaseChatMessageHistory):
    """The active thread of a conversation as a LangChain chat history.

    Make one for each call, as `RunnableWithMessageHistory` does through its `get_session_history`; that costs
    microseconds.

    Args:
        session_id: The conversation's name within the system.
        system: Where it is stored.
        **options: As for `ChatMemory`: a `node_selector` sorts turns into threads, a `window` limits what is
            shown.

    Raises:
        InputError: The session id is empty, or `system` is none.

    Example:
        >>> history = ThreadMemChatMessageHistory("first", MemorySystem())
        >>> history.add_user_message("Hello")
        >>> [message.content for message in history.messages]
        ['Hello']
    """

    def __init__(self, session_id: str, system: MemorySystem, **options: Unpack[ConversationOptions]) -> None:
        check_system(system, "for a URL use ThreadMemChatMessageHistory.from_conn_string")
        check_name("a session id", session_id)
        self.memory = ChatMemory(system=system, conversation_id=session_id, **options)
        self._conversation = self.memory._conversation
        self._runtime = system.runtime
        self._seen: Seen | None = None

    @classmethod
    def from_conn_string(
        cls, url: str, session_id: str, *, owner: str = "user", **options: Unpack[ConversationOptions]
    ) -> Self:
        """A history in the database behind a URL.

        Args:
            url: As for `MemorySystem`.
            session_id: The conversation's name.
            owner: Whose memory it is.
            **options: As for `ChatMemory`.
        """
        return cls(session_id, shared_system(url, owner), **options)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # LangChain declares a field and reads a property
        """The active thread as it was when this object first showed it; fresh again after a turn is
        stored.
        """
        return run(self._show(), self._runtime)

    async def aget_messages(self) -> list[BaseMessage]:
        """Async `messages`."""
        return await arun(self._show(), self._runtime)

    def _show(self) -> Flow[list[BaseMessage]]:
        check_owner(ensure_config(), self._runtime.owner)
        if self._seen is None:
            self._seen = yield from read.seen(self._conversation)
        return list(self._seen.messages)

    @verb
    def add_messages(self, messages: Sequence[BaseMessage]) -> Flow[None]:
        """Store a turn in one transaction.

        Raises:
            PersistenceError: The turn could not be stored; LangChain raises the error to the caller.
        """
        parent: Parent = TIP if self._seen is None else self._seen.tip
        yield from append.remember(self._conversation, messages, parent)
        self._seen = None

    aadd_messages = averb(add_messages)

    @verb
    def clear(self) -> Flow[None]:
        """Remove every message of this conversation."""
        yield from reset.reset(self._conversation)
        self._seen = None

    aclear = averb(clear)
