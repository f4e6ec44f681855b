"""LangChain4j's chat memories: the same rules for windows and the same calls of a store.

Such a memory is a list that is kept within a window. What leaves the window leaves the store too; a program
that wants the whole conversation uses `ChatMemory(window=...)`, whose window is a view. The rules are in
`messages.windows`; by default a tool call and its results stay together even where LangChain4j parts them,
and `compat="langchain4j"` gives its lists exactly.

What differs from LangChain4j on purpose: `set` refuses an empty list, as its documentation says, and no store
hands out the list that it keeps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

from langchain_core.messages import BaseMessage
from langchain_core.messages.utils import MessageLikeRepresentation

from langchain_threadmem.common import forking
from langchain_threadmem.engine.flow import run
from langchain_threadmem.errors import InputError
from langchain_threadmem.memory_system import MemorySystem
from langchain_threadmem.messages.convert import Given, as_messages
from langchain_threadmem.messages.ids import check_name
from langchain_threadmem.messages.windows import (
    Compat,
    CountsTokens,
    Limit,
    LimitedWindow,
    MessageWindow,
    TokenWindow,
)
from langchain_threadmem.store import verbs as store_verbs

Memory = TypeVar("Memory")


class ChatMemoryStore:
    """Where chat memories keep their lists, each under an id: here in memory, for any number of ids.

    For a store of one's own override the three methods; a subclass is not required.

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
        """The list of an id; empty if there is none. Called whenever a memory is read or added to."""
        return list(self._lists.get(memory_id, ()))

    def update_messages(self, memory_id: Hashable, messages: Sequence[BaseMessage]) -> None:
        """Keep a list in the place of the one before. Called for each message that is added."""
        self._lists[memory_id] = list(messages)

    def delete_messages(self, memory_id: Hashable) -> None:
        """Remove the list of an id, if there is one. Called when a memory is cleared."""
        self._lists.pop(memory_id, None)


class SingleSlotChatMemoryStore(ChatMemoryStore):
    """What a memory keeps its list in by default: in memory, for its own id alone.

    Args:
        memory_id: The id.
    """

    def __init__(self, memory_id: Hashable) -> None:
        super().__init__()
        self._id = memory_id

    def get_messages(self, memory_id: Hashable) -> list[BaseMessage]:
        """The list.

        Raises:
            InputError: Another id is asked for; likewise in the other methods.
        """
        self._check(memory_id)
        return super().get_messages(memory_id)

    def update_messages(self, memory_id: Hashable, messages: Sequence[BaseMessage]) -> None:
        """Keep a list in the place of the one before."""
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
    """Lists kept in the database of a `MemorySystem`, for its owner; each change is one transaction.

    They stand beside the conversations of the system: nothing of them is recalled, and what leaves them is
    gone. Of two writers to the same id at the same time the last one wins.

    Args:
        system: Where the lists are kept.

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
            InputError: The id is no text; likewise in the other methods.
        """
        return run(store_verbs.get_list(self._runtime, _text(memory_id)), self._runtime)

    def update_messages(self, memory_id: Hashable, messages: Sequence[BaseMessage]) -> None:
        """Keep a list in the place of the one before.

        Raises:
            UnsupportedMessageError: A message cannot be kept exactly; the list before stays.
        """
        run(store_verbs.put_list(self._runtime, _text(memory_id), messages), self._runtime)

    def delete_messages(self, memory_id: Hashable) -> None:
        """Remove the list of an id, if there is one."""
        run(store_verbs.remove_list(self._runtime, _text(memory_id)), self._runtime)


class WindowChatMemory:
    """What both memories have in common: a window and a store.

    One object may be used by several threads at once; two objects on one id may not.

    Args:
        window: What fits.
        id: Whose memory it is; any value but `None` that can be a key.
        store: Where the list is kept: a `ChatMemoryStore`, a `MemorySystem`, or `None` for a slot of its own.
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

    def add(self, *messages: Given | None) -> None:
        """Add messages, each with one read and one write of the store; an equal system message is not
        written.

        Args:
            *messages: Messages in any form that LangChain accepts, or lists of them; `None` is passed over.

        Raises:
            InputError: Something is no message, and nothing was added; or the limit is not greater than zero.
        """
        for message in [one for given in messages if given is not None for one in as_messages(given)]:
            with self._lock:
                changed = self._window.added(self._stored(), message, self._window.limit(self.id))
                if changed is not None:
                    self.store.update_messages(self.id, changed)

    @property
    def messages(self) -> list[BaseMessage]:
        """What of the stored list fits, in a new list; the store is read once and not written.

        So a limit that has become smaller hides messages, and they come back when it grows again before the
        next `add` or `set`.
        """
        return self._window.fitted(self._stored(), self._window.limit(self.id))

    def set(self, messages: Iterable[MessageLikeRepresentation]) -> None:
        """Replace everything, after a summary for example, with one write of the store.

        What does not fit is left out; of several system messages the first is the one that stays.

        Raises:
            InputError: There are no messages; `clear()` empties a memory.
        """
        if isinstance(messages, str | BaseMessage):
            messages = [messages]
        given = [] if messages is None else as_messages(list(messages))
        if not given:
            raise InputError(f"messages={messages!r} holds no message; use clear() to empty a memory")
        with self._lock:
            self.store.update_messages(self.id, self._window.fitted(given, self._window.limit(self.id)))

    def clear(self) -> None:
        """Remove everything."""
        with self._lock:
            self.store.delete_messages(self.id)

    # A store of one's own knows no event loop, so the twins call it from another thread.

    async def aadd(self, *messages: Given | None) -> None:
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

    def _stored(self) -> list[BaseMessage]:
        found = self.store.get_messages(self.id)
        if found is None:
            raise InputError(
                f"{self.store!r} returned None for id {self.id!r}; return a list, empty if need be"
            )
        return list(found)


class MessageWindowChatMemory(WindowChatMemory):
    """The newest messages of a conversation, and nothing else.

    Args:
        max_messages: How many at most; or a function from the id to that number, called at each use.
        id: Whose memory it is.
        store: Where the list is kept: a `ChatMemoryStore`, a `MemorySystem`, or `None` for a slot of its own,
            in memory.
        keep_system_first: Put a system message in front of all others.
        compat: "langchain4j" for exactly its lists.
        count_system: Whether the system message counts.
        strict_tool_pairs: Keep a tool call and its results together, wherever they stand.

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
    """The newest messages of a conversation that have no more than so many tokens together, and nothing else.

    Args:
        max_tokens: How many at most; or a function from the id to that number, called at each use.
        token_counter: As for `TokenWindow`.
        id: Whose memory it is.
        store: As for `MessageWindowChatMemory`.
        keep_system_first: Put a system message in front of all others.
        compat: "langchain4j" for exactly its lists.
        count_system: Whether the system message counts.
        strict_tool_pairs: Keep a tool call and its results together, wherever they stand.

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


class ChatMemoryProvider(Generic[Memory]):
    """One memory for each id, made when it is first asked for.

    Args:
        create: Makes the memory of an id. Called once for each, whatever the number of threads; they wait.

    Example:
        >>> memories = ChatMemoryProvider(lambda id: MessageWindowChatMemory(10, id=id))
        >>> memories.get("ada") is memories.get("ada")
        True
    """

    def __init__(self, create: Callable[[Hashable], Memory]) -> None:
        self._create = create
        self._memories: dict[Hashable, Memory] = {}
        self._lock = forking.rlock()

    def get(self, memory_id: Hashable = "default") -> Memory:
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

    def evict(self, memory_id: Hashable) -> Memory | None:
        """Let go of the memory of an id, and return it; what its store keeps stays there."""
        with self._lock:
            return self._memories.pop(_checked(memory_id), None)


def _checked(memory_id: Hashable) -> Hashable:
    if memory_id is None:
        raise InputError('the id of a chat memory is None; pass its name, or leave it out for "default"')
    return memory_id


def _store(given: ChatMemoryStore | MemorySystem | None, memory_id: Hashable) -> ChatMemoryStore:
    if given is None:
        return SingleSlotChatMemoryStore(memory_id)
    if isinstance(given, MemorySystem):
        return SystemChatMemoryStore(given)
    if not all(callable(getattr(given, f"{verb}_messages", None)) for verb in ("get", "update", "delete")):
        raise InputError(
            f"store={given!r} is no store; pass a ChatMemoryStore, a MemorySystem, "
            "or an object with get_messages, update_messages and delete_messages"
        )
    return given


def _text(memory_id: Hashable) -> str:
    if memory_id != "":
        check_name("the id of a memory that is kept in a database", memory_id)
    return str(memory_id)
