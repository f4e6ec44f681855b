"""Message windows: limits of the messages that a model is shown, by number or by tokens.

A window is a view: it selects the newest messages that fit, and does not change the history. The rules are
those of LangChain4j's chat memory:

- Messages are indivisible, and the oldest are evicted first.
- A list has one system message, which is never evicted and counts unless `count_system=False`. An equal
  system message is ignored; a different one replaces it, at the end, or in front with `keep_system_first`.
- A tool call is evicted together with its results.

LangChain4j evicts only the results directly after their call, so a result that follows later, or after
another message, stays without its call. Providers refuse such a list. By default (`strict_tool_pairs`) a
window therefore never shows a result without its call, nor a call without its existing results.
`compat="langchain4j"` returns exactly the lists of LangChain4j.

The rules apply to lists of messages, so that a view of a tree (`ChatMemory(window=...)`) and a list in a
store (`MessageWindowChatMemory`) share them.
"""

from __future__ import annotations

import logging
import operator
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast

from langchain_core.messages import BaseMessage, SystemMessage

from langchain_threadmem.common.inputs import check_no_class, check_one_of, is_whole
from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.tokens import count_tokens
from langchain_threadmem.messages.tool_pairs import cuts, exchanges

log = logging.getLogger(__package__)

Limit = int | Callable[[Any], int]
"""A number, or a function from a conversation's id to a number, called at each use."""
Window = Callable[[list[BaseMessage]], Sequence[BaseMessage]]
"""A function from the messages of a thread to those that a model is shown."""
Compat = Literal["langchain4j"] | None


class CountsTokens(Protocol):
    """A language model that counts tokens, such as LangChain's `BaseLanguageModel`."""

    def get_num_tokens_from_messages(self, messages: list[BaseMessage]) -> int:
        """The number of tokens of messages."""


class LimitedWindow(ABC):
    """The base class of `MessageWindow` and `TokenWindow`, which evicts messages.

    Args:
        limit: The limit.
        name: The name of the limit in errors.
        keep_system_first, count_system, strict_tool_pairs, compat: As for `MessageWindow`.
    """

    def __init__(
        self,
        limit: Limit,
        name: str,
        *,
        keep_system_first: bool,
        count_system: bool,
        strict_tool_pairs: bool,
        compat: Compat,
    ) -> None:
        check_one_of("compat", compat, (None, "langchain4j"))
        self._limit = limit
        self._name = name
        self._keep_system_first = keep_system_first
        self._count_system = count_system
        self._strict = strict_tool_pairs and compat is None
        self._warned = False
        if not callable(limit):
            self.limit("")

    @property
    def reads_from_end(self) -> bool:
        """Whether the newest messages alone determine the result; with `compat` all messages do."""
        return self._strict

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._limit!r})"

    def __call__(
        self, messages: Sequence[BaseMessage], conversation_id: Any = "default"
    ) -> list[BaseMessage]:
        """The messages of a conversation that are shown.

        Args:
            messages: All messages, oldest first; the list is not changed.
            conversation_id: The conversation, if the limit is a function of it.

        Returns:
            A new list. Every message is read once, and the tokens of the newest messages are counted; with
            `compat` the messages are added one by one, and all tokens are counted each time.

        Raises:
            InputError: The limit is not greater than zero, or the token counter did not return a number.
        """
        limit = self.limit(conversation_id)
        if self._strict:
            return self._fitted(self._with_one_system(messages), limit)[0]
        shown: list[BaseMessage] = []
        for message in messages:
            changed = self._added(shown, message, limit)
            shown = shown if changed is None else changed
        return shown

    def from_end(self, messages: Sequence[BaseMessage], conversation_id: Any) -> list[BaseMessage] | None:
        """The messages that are shown, from the newest messages of a conversation.

        Returns:
            The result for all messages of the conversation; `None` if it depends on earlier messages.
        """
        if not self.reads_from_end:
            return None
        shown, is_full = self._fitted(self._with_one_system(messages), self.limit(conversation_id))
        return shown if is_full else None

    def limit(self, conversation_id: Any) -> int:
        """The limit of a conversation.

        Raises:
            InputError: The limit is not greater than zero.
        """
        limit = self._limit(conversation_id) if callable(self._limit) else self._limit
        if not is_whole(limit, 1):
            raise InputError(f"{self._name} must be greater than zero, but is: {limit}")
        return limit

    def added(
        self, messages: Sequence[BaseMessage], message: BaseMessage, limit: int
    ) -> list[BaseMessage] | None:
        """Add a message to a list.

        Returns:
            A new list within the limit; `None` if the list has an equal system message and does not change.
        """
        return self._added(self.fitted(messages, limit), message, limit)

    def _added(
        self, messages: list[BaseMessage], message: BaseMessage, limit: int
    ) -> list[BaseMessage] | None:
        """`added` for a list within the limit, which is changed."""
        if isinstance(message, SystemMessage):
            index = _first_system(messages)
            if index is not None:
                if messages[index].content == message.content:
                    return None
                del messages[index]
        messages.insert(
            0 if self._keep_system_first and isinstance(message, SystemMessage) else len(messages), message
        )
        return self.fitted(messages, limit)

    def fitted(self, messages: Sequence[BaseMessage], limit: int) -> list[BaseMessage]:
        """The messages of a list that fit: its first system message, and the newest other messages.

        Args:
            messages: The list; of several system messages only the first is always shown.

        Returns:
            A new list.
        """
        return self._fitted(messages, limit)[0]

    def _fitted(self, messages: Sequence[BaseMessage], limit: int) -> tuple[list[BaseMessage], bool]:
        """`fitted`, and whether a message was evicted."""
        system = _first_system(messages)
        starts, since = (
            (range(len(messages) + 1), exchanges(messages))
            if self._strict
            else (cuts(messages), range(len(messages)))
        )

        def messages_from(start: int) -> list[BaseMessage]:
            newest = [messages[n] for n in range(start, len(messages)) if since[n] >= start]
            return newest if system is None or system >= start else [messages[system], *newest]

        def fits(n: int) -> bool:
            candidates = messages_from(starts[n])
            if not self._count_system:
                candidates = [message for message in candidates if not isinstance(message, SystemMessage)]
            return not candidates or self._fits(candidates, limit)

        first = _first_fitting(len(starts) - 1, fits)
        shown = messages_from(starts[first])
        if len(shown) == 1 < len(messages) and isinstance(shown[0], SystemMessage):
            self._warn(limit)
        return shown, first > 0

    @abstractmethod
    def _fits(self, messages: list[BaseMessage], limit: int) -> bool:
        """Whether messages are within the limit."""

    def _with_one_system(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """The messages with one system message, as if they were added one by one."""
        system: int | None = None
        for n, message in enumerate(messages):
            if isinstance(message, SystemMessage) and (
                system is None or message.content != messages[system].content
            ):
                system = n
        shown = [m for n, m in enumerate(messages) if n == system or not isinstance(m, SystemMessage)]
        if system is not None and self._keep_system_first:
            shown.sort(key=lambda message: not isinstance(message, SystemMessage))
        return shown

    def _warn(self, limit: int) -> None:
        if not self._warned:
            self._warned = True
            log.warning(
                "only the system message is left in a window of %s=%d; raise the limit%s",
                self._name,
                limit,
                ", or pass count_system=False" if self._count_system else "",
            )


class MessageWindow(LimitedWindow):
    """A window of the newest messages.

    Args:
        max_messages: The maximum number of messages, or a function from the conversation's id to that number,
            which is called at each use.
        keep_system_first: Whether to put the system message before all other messages.
        count_system: Whether the system message counts. It is always shown, so if it counts, a window of one
            message shows no other message; a warning is logged once.
        strict_tool_pairs: Whether tool results are never shown without their call, nor calls without their
            results.
        compat: "langchain4j" for exactly the lists of LangChain4j, which turns `strict_tool_pairs` off.

    Raises:
        InputError: `max_messages` is not greater than zero.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> window = MessageWindow(2)
        >>> [message.content for message in window([HumanMessage(text) for text in ("one", "two", "three")])]
        ['two', 'three']
    """

    def __init__(
        self,
        max_messages: Limit,
        *,
        keep_system_first: bool = False,
        count_system: bool = True,
        strict_tool_pairs: bool = True,
        compat: Compat = None,
    ) -> None:
        super().__init__(
            max_messages,
            "maxMessages",
            keep_system_first=keep_system_first,
            count_system=count_system,
            strict_tool_pairs=strict_tool_pairs,
            compat=compat,
        )

    def _fits(self, messages: list[BaseMessage], limit: int) -> bool:
        return len(messages) <= limit


class TokenWindow(LimitedWindow):
    """A window of the newest messages with a limited number of tokens.

    If the newest message has more tokens than the window, no message is shown.

    Args:
        max_tokens: The maximum number of tokens, or a function from the conversation's id to that number,
            which is called at each use.
        token_counter: Counts the tokens of a list of messages: a language model, or a function, which may add
            an overhead for each request but must not return less for more messages. By default
            `messages.tokens.count_tokens`: a measured table, in which encoded data counts as an image.
        keep_system_first: Whether to put the system message before all other messages.
        count_system: Whether the system message counts. It is always shown, even if it is larger than the
            window.
        strict_tool_pairs: Whether tool results are never shown without their call, nor calls without their
            results.
        compat: "langchain4j" for exactly the lists of LangChain4j, which turns `strict_tool_pairs` off.

    Raises:
        InputError: `max_tokens` is not greater than zero, or `token_counter` cannot count.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> window = TokenWindow(4, lambda messages: sum(len(m.content.split()) for m in messages))
        >>> [message.content for message in window([HumanMessage("one two three"), HumanMessage("and four")])]
        ['and four']
    """

    def __init__(
        self,
        max_tokens: Limit,
        token_counter: Callable[[list[BaseMessage]], int] | CountsTokens | None = None,
        *,
        keep_system_first: bool = False,
        count_system: bool = True,
        strict_tool_pairs: bool = True,
        compat: Compat = None,
    ) -> None:
        super().__init__(
            max_tokens,
            "maxTokens",
            keep_system_first=keep_system_first,
            count_system=count_system,
            strict_tool_pairs=strict_tool_pairs,
            compat=compat,
        )
        check_no_class("token_counter", token_counter)
        counter: Any = count_tokens if token_counter is None else token_counter
        self._count = getattr(counter, "get_num_tokens_from_messages", counter)
        if not callable(self._count):
            raise InputError(
                f"token_counter={token_counter!r} cannot count; pass a function messages -> int, or a model"
            )

    def _fits(self, messages: list[BaseMessage], limit: int) -> bool:
        count = self._count(messages)
        try:
            return operator.index(count) <= limit
        except TypeError:
            raise InputError(
                f"the token_counter returned {count!r}; return the number of tokens of the messages"
            ) from None


@dataclass(frozen=True, slots=True)
class BoundWindow:
    """A window with the limit of one conversation."""

    window: LimitedWindow
    conversation_id: str

    def __call__(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """The messages that are shown."""
        return self.window(messages, self.conversation_id)

    @property
    def reads_from_end(self) -> bool:
        """Whether `from_end` may return a list."""
        return self.window.reads_from_end

    def from_end(self, messages: Sequence[BaseMessage]) -> list[BaseMessage] | None:
        """The messages that are shown, from the newest messages; `None` if more messages are needed."""
        return self.window.from_end(messages, self.conversation_id)


def check_window(window: object) -> None:
    """Refuse an option that is not a window."""
    check_no_class("window", window)
    if window is not None and not callable(window):
        raise InputError(
            f"{window!r} is not a window; pass MessageWindow(...), TokenWindow(...), "
            "or a function from messages to messages"
        )


def bound(window: Window | None, conversation_id: str) -> Window | None:
    """The window of one conversation, to which a limit that depends on the conversation is bound."""
    if window is None:
        return None
    return BoundWindow(window, conversation_id) if isinstance(window, LimitedWindow) else _checked(window)


def _checked(window: Window) -> Window:
    """A function as a window whose result is checked to be a list of messages."""

    def view(messages: list[BaseMessage]) -> list[BaseMessage]:
        result: object = window(messages)
        shown = list(result) if isinstance(result, Iterable) else [result]
        if not all(isinstance(message, BaseMessage) for message in shown):
            raise InputError(f"the window {window!r} returned {result!r:.80}; return a list of messages")
        return cast("list[BaseMessage]", shown)

    return view


def _first_system(messages: Sequence[BaseMessage]) -> int | None:
    return next((n for n, message in enumerate(messages) if isinstance(message, SystemMessage)), None)


def _first_fitting(last: int, fits: Callable[[int], bool]) -> int:
    """The first of the positions 0 to `last` that fits; `last` fits, and so do all positions after a fit.

    The search begins at the end with doubling steps, so its cost depends on the number of messages shown.
    """
    step = 1
    while step <= last and fits(last - step):
        step *= 2
    fitting = last - step // 2
    return bisect_left(range(fitting), True, lo=max(last - step + 1, 0), key=fits)
