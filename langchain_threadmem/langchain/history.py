"""LangChain's chat history over a `ChatMemory`, for `RunnableWithMessageHistory`.

`RunnableWithMessageHistory` reads the history before a turn and depends on the number of messages when it
stores the turn. So a history returns the same messages until the turn is stored, even if another caller
writes meanwhile, and a linear conversation continues the last of these messages: two calls at the same time
become two threads.

`RunnableWithMessageHistory` and `BaseChatMessageHistory` are deprecated in LangChain; new programs pass a
checkpointer to LangGraph. The import of this module causes no warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, Unpack

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage
from langchain_core.runnables import ensure_config

from langchain_threadmem.chat_memory import ChatMemory, ConversationOptions, check_options
from langchain_threadmem.engine.flow import Flow, arun, averb, run, verb
from langchain_threadmem.engine.owners import OwnerOfRun
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import OwnerMismatchError
from langchain_threadmem.langgraph._system import check_system, checked_owner, shared_system, system_of_run
from langchain_threadmem.langgraph.routing.store_messages import remember
from langchain_threadmem.maintenance.removal import erase
from langchain_threadmem.memory_system import MemorySystem
from langchain_threadmem.messages.ids import name_of
from langchain_threadmem.messages.prompt import from_human
from langchain_threadmem.selection.run_selector import ThreadedConversation
from langchain_threadmem.tree import read
from langchain_threadmem.tree.append import TIP
from langchain_threadmem.tree.read import ThreadSnapshot


class ThreadMemChatMessageHistory(BaseChatMessageHistory):
    """The active thread of a conversation as a LangChain chat history.

    Create an object for each call, as `RunnableWithMessageHistory` does with its `get_session_history`; an
    object is created in microseconds.

    Args:
        session_id: The name of the conversation.
        system: The system of the conversation.
        owner: The owner of a run: the name of a field of the run's context or `configurable`, or a function
            of the run. By default the system's owner.
        **options: As for `ChatMemory`: a `node_selector` selects the threads of turns, a `window` limits
            `messages`.

    Raises:
        InputError: The session id is empty, or `system` is not a `MemorySystem`.

    Example:
        >>> history = ThreadMemChatMessageHistory("first", MemorySystem())
        >>> history.add_user_message("Hello")
        >>> [message.content for message in history.messages]
        ['Hello']
    """

    def __init__(
        self,
        session_id: str,
        system: MemorySystem,
        *,
        owner: OwnerOfRun | None = None,
        **options: Unpack[ConversationOptions],
    ) -> None:
        check_system(system, "for a URL use ThreadMemChatMessageHistory.from_conn_string")
        self._session_id = name_of("a session id", session_id)
        self._system = system
        self._owner = checked_owner(owner)
        self._options = options
        self._memory: ChatMemory | None = None
        self._shown: ThreadSnapshot | None = None
        check_options(**options)

    @property
    def memory(self) -> ChatMemory:
        """The conversation, of the owner of the run in which the history is first used."""
        if self._memory is None:
            system = system_of_run(self._system, self._owner)
            self._memory = system.conversation(self._session_id, **self._options)
        return self._memory

    @property
    def _conversation(self) -> ThreadedConversation:
        return self.memory._conversation

    @property
    def _runtime(self) -> Runtime:
        return self._conversation.runtime

    @classmethod
    def from_conn_string(
        cls, url: str, session_id: str, *, owner: str = "user", **options: Unpack[ConversationOptions]
    ) -> Self:
        """A history in the database of a URL.

        Args:
            url: As for `MemorySystem`.
            session_id: The name of the conversation.
            owner: The owner of the memory.
            **options: As for `ChatMemory`.
        """
        return cls(session_id, shared_system(url, owner), **options)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # LangChain declares a field and reads a property
        """The active thread at the first access, or at the first access after a turn was stored."""
        return run(self._show(), self._runtime)

    async def aget_messages(self) -> list[BaseMessage]:
        """Async `messages`."""
        return await arun(self._show(), self._runtime)

    def _show(self) -> Flow[list[BaseMessage]]:
        owner = system_of_run(self._system, self._owner, ensure_config()).owner
        if owner != self._runtime.owner:
            raise OwnerMismatchError(
                f"the history is that of {self._runtime.owner!r}, and the run is for {owner!r}; make a "
                "history for each run"
            )
        if self._shown is None:
            self._shown = yield from read.active_thread(self._conversation)
        messages = self._shown.messages
        # A prompt adds a question to these messages, and begins with a human message.
        return list(messages) if self._conversation.window is None else from_human(messages)

    @verb
    def add_messages(self, messages: Sequence[BaseMessage]) -> Flow[None]:
        """Store a turn in one transaction.

        Raises:
            PersistenceError: The turn could not be stored. `RunnableWithMessageHistory` logs the error as a
                warning and returns the answer; a LangGraph graph raises the error.
        """
        tip, read_in = (TIP, None) if self._shown is None else (self._shown.tip, self._shown.read_in)
        yield from remember(self._conversation, messages, tip, read_in)
        self._shown = None

    aadd_messages = averb(add_messages)

    @verb
    def clear(self) -> Flow[None]:
        """Remove every message of this conversation."""
        yield from erase.reset(self._runtime, self._session_id)
        self._shown = None

    aclear = averb(clear)
