"""LangChain4j's chat memories, with the same rules for windows and the same calls of a store.

A memory is a list within a window: messages outside of the window are also removed from the store. The window
of `ChatMemory(window=...)`, in contrast, is a view of the whole conversation. The rules are in
`messages.windows`; by default a tool call and its results stay together where LangChain4j separates them, and
`compat="langchain4j"` produces exactly the lists of LangChain4j.

Two differences are intended: `set` refuses an empty list, as the documentation of LangChain4j says, and a
store returns copies of its lists.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from langchain_core.messages import BaseMessage
from langchain_core.messages.utils import MessageLikeRepresentation

from langchain_threadmem.common import forking
from langchain_threadmem.engine.flow import run
from langchain_threadmem.errors import InputError
from langchain_threadmem.langgraph.items import verbs as store_verbs
from langchain_threadmem.memory_system import MemorySystem
from langchain_threadmem.messages.codec import MessageInput, messages_of
from langchain_threadmem.messages.ids import name_of
from langchain_threadmem.messages.windows import (
    Compat,
    CountsTokens,
    Limit,
    LimitedWindow,
    MessageWindow,
    TokenWindow,
)

MemoryT = TypeVar("MemoryT")


class ChatMemoryStore:
    """A store of the lists of chat memories by id; this class stores them in memory.

    Any object with the three methods can be a store.

    Example:
        >>> store = ChatMemoryStore()
        >>> ada, bob = (MessageWindowChatMemory(10, id=name, store=store) for name in ("ada", "bob"))
        >>> ada.add("Hello")
        >>> [message.content for message in store.get_messages("ada")], store.get_messages("bob")
        (['Hello'], [])
    """

    def __init__(self) -> None:
        self._lists: dict[Hashable, list[BaseMessage]] = {}

    def get_messages(self, memory_id: Hashable) -> list[BaseMessage]:
        """The list of an id, empty if there is none; called by each read and each addition of a memory."""
        return list(self._lists.get(memory_id, ()))

    def update_messages(self, memory_id: Hashable, messages: Sequence[BaseMessage]) -> None:
        """Replace the list of an id; called for each added message."""
        self._lists[memory_id] = list(messages)

    def delete_messages(self, memory_id: Hashable) -> None:
        """Remove the list of an id, if any; called when a memory is cleared."""
        self._lists.pop(memory_id, None)


class SingleSlotChatMemoryStore(ChatMemoryStore):
    """The default store of a memory: the list of one id, in memory.

    Args:
        memory_id: The id.
    """

    def __init__(self, memory_id: Hashable) -> None:
        super().__init__()
        self._id = memory_id

    def get_messages(self, memory_id: Hashable) -> list[BaseMessage]:
        """The list.

        Raises:
            InputError: The id is not `memory_id`; the other methods raise the error too.
        """
        self._check(memory_id)
        return super().get_messages(memory_id)

    def update_messages(self, memory_id: Hashable, messages: Sequence[BaseMessage]) -> None:
        """Replace the list."""
        self._check(memory_id)
        super().update_messages(memory_id, messages)

    def delete_messages(self, memory_id: Hashable) -> None:
        """Remove the list."""
        self._check(memory_id)
        super().delete_messages(memory_id)

    def _check(self, memory_id: Hashable) -> None:
        if memory_id != self._id:
            raise InputError(
                f"This chat memory has id: {self._id} "
                f"but an operation has been requested on a memory with id: {memory_id}"
            )


class SystemChatMemoryStore(ChatMemoryStore):
    """A store in the database of a `MemorySystem`, for its owner; each change is one transaction.

    The lists are separate from the conversations of the system: recall does not find their messages. Of two
    concurrent writes to the same id the last write is stored.

    Args:
        system: The system of the database.

    Example:
        >>> system = MemorySystem(embeddings=False)
        >>> MessageWindowChatMemory(10, id="ada", store=system).add("Hello")
        >>> [message.content for message in SystemChatMemoryStore(system).get_messages("ada")]
        ['Hello']
    """

    def __init__(self, system: MemorySystem) -> None:
        super().__init__()
        self._runtime = system.runtime

    def get_messages(self, memory_id: Hashable) -> list[BaseMessage]:
        """The list of an id; empty if there is none.

        Raises:
            InputError: The id is not text; the other methods raise the error too.
        """
        return run(store_verbs.get_list(self._runtime, _text(memory_id)), self._runtime)

    def update_messages(self, memory_id: Hashable, messages: Sequence[BaseMessage]) -> None:
        """Replace the list of an id.

        Raises:
            UnsupportedMessageError: A message cannot be stored exactly; the list is unchanged.
        """
        run(store_verbs.put_list(self._runtime, _text(memory_id), messages), self._runtime)

    def delete_messages(self, memory_id: Hashable) -> None:
        """Remove the list of an id, if there is one."""
        run(store_verbs.remove_list(self._runtime, _text(memory_id)), self._runtime)


class WindowChatMemory:
    """Base class of both memories: a list of messages with a window and a store.

    Several threads may use one object at once, but not two objects with the same id.

    Args:
        window: The window.
        id: The id of the memory; any hashable value except `None`.
        store: The store of the list: a `ChatMemoryStore`, a `MemorySystem`, or `None` for a store in memory.
    """

    def __init__(
        self, window: LimitedWindow, id: Hashable, store: ChatMemoryStore | MemorySystem | None
    ) -> None:
        self.id = _checked(id)
        self.store = _store(store, id)
        self._window = window
        self._lock = forking.rlock()
        window.limit(id)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._window!r}, id={self.id!r})"

    def __getstate__(self) -> dict[str, Any]:
        """The values of a copy; a memory whose store is in a database is not copied."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=forking.rlock())

    def add(self, *messages: MessageInput | None) -> None:
        """Add messages, each with one read and one write of the store.

        A system message that equals the stored system message is not written.

        Args:
            *messages: Messages in any form that LangChain accepts, or lists of them; `None` is ignored.

        Raises:
            InputError: An argument is not a message, and no message was added; or the limit is not greater
                than zero.
        """
        added = [
            message for item in messages if item is not None for message in messages_of(item, copies=False)
        ]
        for message in added:
            with self._lock:
                changed = self._window.added(self._read(), message, self._window.limit(self.id))
                if changed is not None:
                    self.store.update_messages(self.id, changed)

    @property
    def messages(self) -> list[BaseMessage]:
        """The messages of the stored list within the window, in a new list; one read of the store.

        A smaller limit hides messages; a larger limit shows them again unless `add` or `set` was called.
        """
        return self._window.fitted(self._read(), self._window.limit(self.id))

    def set(self, messages: Iterable[MessageLikeRepresentation]) -> None:
        """Replace all messages, for example after a summary, with one write of the store.

        Messages outside of the window are omitted; of several system messages the first is stored.

        Raises:
            InputError: There are no messages; `clear()` empties a memory.
        """
        if isinstance(messages, str | BaseMessage):
            messages = [messages]
        converted = [] if messages is None else messages_of(list(messages), copies=False)
        if not converted:
            raise InputError(f"messages={messages!r} contains no message; use clear() to empty a memory")
        with self._lock:
            self.store.update_messages(self.id, self._window.fitted(converted, self._window.limit(self.id)))

    def clear(self) -> None:
        """Remove all messages."""
        with self._lock:
            self.store.delete_messages(self.id)

    # A store may block, so the async methods call it in a thread.

    async def aadd(self, *messages: MessageInput | None) -> None:
        """Async `add`."""
        await asyncio.to_thread(self.add, *messages)

    async def amessages(self) -> list[BaseMessage]:
        """Async `messages`."""
        return await asyncio.to_thread(lambda: self.messages)

    async def aset(self, messages: Iterable[MessageLikeRepresentation]) -> None:
        """Async `set`."""
        await asyncio.to_thread(self.set, messages)

    async def aclear(self) -> None:
        """Async `clear`."""
        await asyncio.to_thread(self.clear)

    def _read(self) -> list[BaseMessage]:
        messages = self.store.get_messages(self.id)
        if messages is None:
            raise InputError(
                f"{self.store!r} returned None for id {self.id!r}; return a list, empty if need be"
            )
        return list(messages)


class MessageWindowChatMemory(WindowChatMemory):
    """The newest messages of a conversation; older messages are removed.

    Args:
        max_messages: Maximum number of messages, or a function of the id that returns it, called at each use.
        id: The id of the memory.
        store: The store of the list: a `ChatMemoryStore`, a `MemorySystem`, or `None` for a store in memory.
        keep_system_first: Whether a system message is moved to the front.
        compat: "langchain4j" for the lists of LangChain4j.
        count_system: Whether the limit includes the system message.
        strict_tool_pairs: Whether a tool call and its results stay together across other messages.

    Raises:
        InputError: `max_messages` is not greater than zero, or the id is `None`.

    Example:
        >>> memory = MessageWindowChatMemory(max_messages=2)
        >>> memory.add("hello", ("ai", "Hi!"), "How are you?")
        >>> [message.content for message in memory.messages]
        ['Hi!', 'How are you?']
    """

    def __init__(
        self,
        max_messages: Limit,
        id: Hashable = "default",
        store: ChatMemoryStore | MemorySystem | None = None,
        keep_system_first: bool = False,
        compat: Compat = None,
        *,
        count_system: bool = True,
        strict_tool_pairs: bool = True,
    ) -> None:
        window = MessageWindow(
            max_messages,
            keep_system_first=keep_system_first,
            count_system=count_system,
            strict_tool_pairs=strict_tool_pairs,
            compat=compat,
        )
        super().__init__(window, id, store)


class TokenWindowChatMemory(WindowChatMemory):
    """The newest messages of a conversation within a number of tokens; older messages are removed.

    Args:
        max_tokens: Maximum number of tokens, or a function of the id that returns it, called at each use.
        token_counter: As for `TokenWindow`.
        id: The id of the memory.
        store: As for `MessageWindowChatMemory`.
        keep_system_first: Whether a system message is moved to the front.
        compat: "langchain4j" for the lists of LangChain4j.
        count_system: Whether the limit includes the system message.
        strict_tool_pairs: Whether a tool call and its results stay together across other messages.

    Raises:
        InputError: `max_tokens` is not greater than zero, `token_counter` cannot count, or the id is `None`.

    Example:
        >>> memory = TokenWindowChatMemory(3, lambda messages: sum(len(m.content.split()) for m in messages))
        >>> memory.add("hello there", ("ai", "Hi!"), "How now?")
        >>> [message.content for message in memory.messages]
        ['Hi!', 'How now?']
    """

    def __init__(
        self,
        max_tokens: Limit,
        token_counter: Callable[[list[BaseMessage]], int] | CountsTokens | None = None,
        id: Hashable = "default",
        store: ChatMemoryStore | MemorySystem | None = None,
        keep_system_first: bool = False,
        compat: Compat = None,
        *,
        count_system: bool = True,
        strict_tool_pairs: bool = True,
    ) -> None:
        window = TokenWindow(
            max_tokens,
            token_counter,
            keep_system_first=keep_system_first,
            count_system=count_system,
            strict_tool_pairs=strict_tool_pairs,
            compat=compat,
        )
        super().__init__(window, id, store)


class ChatMemoryProvider(Generic[MemoryT]):
    """Memories by id, each created at the first call.

    Args:
        create: Creates the memory of an id; called once for each id, also with several threads.

    Example:
        >>> memories = ChatMemoryProvider(lambda id: MessageWindowChatMemory(10, id=id))
        >>> memories.get("ada") is memories.get("ada")
        True
    """

    def __init__(self, create: Callable[[Hashable], MemoryT]) -> None:
        self._create = create
        self._memories: dict[Hashable, MemoryT] = {}
        self._lock = forking.rlock()

    def get(self, memory_id: Hashable = "default") -> MemoryT:
        """The memory of an id.

        Raises:
            InputError: The id is `None`.
        """
        _checked(memory_id)
        with self._lock:
            if memory_id not in self._memories:
                self._memories[memory_id] = self._create(memory_id)
            return self._memories[memory_id]

    __call__ = get

    def evict(self, memory_id: Hashable) -> MemoryT | None:
        """Remove and return the memory of an id; its store is not changed."""
        with self._lock:
            return self._memories.pop(_checked(memory_id), None)


def _checked(memory_id: Hashable) -> Hashable:
    if memory_id is None:
        raise InputError('the id of a chat memory is None; pass its name, or leave it out for "default"')
    return memory_id


def _store(store: ChatMemoryStore | MemorySystem | None, memory_id: Hashable) -> ChatMemoryStore:
    if store is None:
        return SingleSlotChatMemoryStore(memory_id)
    if isinstance(store, MemorySystem):
        return SystemChatMemoryStore(store)
    if not all(callable(getattr(store, f"{verb}_messages", None)) for verb in ("get", "update", "delete")):
        raise InputError(
            f"store={store!r} is not a store; pass a ChatMemoryStore, a MemorySystem, "
            "or an object with get_messages, update_messages and delete_messages"
        )
    return store


def _text(memory_id: Hashable) -> str:
    return "" if memory_id == "" else name_of("the id of a memory that is kept in a database", memory_id)
