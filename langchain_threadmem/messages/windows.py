"""Message windows: limits on what a model is shown, by number of messages or by tokens.

A window is a view: it keeps the newest messages that fit, and history stays as it is. The rules are those of
LangChain4j's chat memory:

- Messages are indivisible, and the oldest are evicted first.
- A list has one system message, which is never evicted and counts unless `count_system=False`. An equal one
  is ignored; another one replaces it, at the end, or in front with `keep_system_first`.
- A tool call is evicted together with its results.

LangChain4j evicts only the results right after their call, so a result that comes later, or behind another
message, stays without its call. Providers refuse such a list. By default (`strict_tool_pairs`) a window
therefore never shows a result without its call, nor a call without its existing results.
`compat="langchain4j"` gives exactly LangChain4j's lists.

The rules work on lists of messages alone, so that a view of a tree (`ChatMemory(window=...)`) and a list in a
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
from langchain_core.messages.utils import count_tokens_approximately

from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.tool_pairs import cuts, exchanges

log = logging.getLogger(__name__)

Limit = int | Callable[[Any], int]
"""A number, or a function from a conversation's id to one, asked at each use."""
Window = Callable[[list[BaseMessage]], Sequence[BaseMessage]]
"""What a model is shown of a thread: any function from messages to messages."""
Compat = Literal["langchain4j"] | None


class CountsTokens(Protocol):
    """What is used of a language model: LangChain's `BaseLanguageModel` has it."""

    def get_num_tokens_from_messages(self, messages: list[BaseMessage]) -> int:
        """How many tokens messages have."""


class LimitedWindow(ABC):
    """What `MessageWindow` and `TokenWindow` have in common: which messages leave, and in which order.

    Args:
        limit: How much is shown.
        name: What it is called in errors.
        keep_system_first: Put a system message in front of all others.
        count_system: Whether system messages count.
        strict_tool_pairs: Never split a tool call from its results.
        compat: "langchain4j" for exactly its lists; `strict_tool_pairs` is off then.
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
        if compat not in (None, "langchain4j"):
            raise InputError(f"compat={compat!r} is not one of None, 'langchain4j'")
        self._limit = limit
        self._name = name
        self._keep_system_first = keep_system_first
        self._count_system = count_system
        self._compat = compat
        self._strict = strict_tool_pairs and compat is None
        self._warned = False
        if not callable(limit):
            self.limit("")

    @property
    def reads_from_end(self) -> bool:
        """Whether the newest messages alone tell what is shown. LangChain4j's lists depend on all before."""
        return self._strict

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._limit!r})"

    def __call__(
        self, messages: Sequence[BaseMessage], conversation_id: Any = "default"
    ) -> list[BaseMessage]:
        """What is shown of a conversation in which these messages were said one after the other.

        Args:
            messages: All of them, oldest first; the list is left as it is.
            conversation_id: Whose limit to use, if the limit is a function.

        Returns:
            A new list. Looks at every message once, and counts the tokens of the newest only; with `compat`
            it adds the messages one by one, and counts at each.

        Raises:
            InputError: The limit is not greater than zero, or the token counter gave no number.
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
        """What is shown of a conversation of which these are the newest messages.

        Returns:
            As a call with all of its messages would give it; `None` if that cannot be told without those.
        """
        if not self.reads_from_end:
            return None
        shown, is_full = self._fitted(self._with_one_system(messages), self.limit(conversation_id))
        return shown if is_full else None

    def limit(self, conversation_id: Any) -> int:
        """The limit of a conversation.

        Raises:
            InputError: It is not greater than zero.
        """
        limit = self._limit(conversation_id) if callable(self._limit) else self._limit
        if not isinstance(limit, int) or isinstance(limit, bool) or limit <= 0:
            raise InputError(f"{self._name} must be greater than zero, but is: {limit}")
        return limit

    def added(
        self, held: Sequence[BaseMessage], message: BaseMessage, limit: int
    ) -> list[BaseMessage] | None:
        """A list in which a message was said after others.

        Args:
            held: The list so far.
            message: What is said now.
            limit: As `limit()` gives it.

        Returns:
            A new list within the limit; `None` if nothing is to change: an equal system message is there.
        """
        return self._added(self.fitted(held, limit), message, limit)

    def _added(self, held: list[BaseMessage], message: BaseMessage, limit: int) -> list[BaseMessage] | None:
        """`added`, for a list that is within the limit and may be changed."""
        if isinstance(message, SystemMessage):
            old = _first_system(held)
            if old is not None:
                if held[old].content == message.content:
                    return None
                del held[old]
        held.insert(
            0 if self._keep_system_first and isinstance(message, SystemMessage) else len(held), message
        )
        return self.fitted(held, limit)

    def fitted(self, held: Sequence[BaseMessage], limit: int) -> list[BaseMessage]:
        """What of a list fits: its first system message, and of the others the newest.

        Args:
            held: The list; it may hold several system messages, of which the first alone is safe.
            limit: As `limit()` gives it.

        Returns:
            A new list.
        """
        return self._fitted(held, limit)[0]

    def _fitted(self, held: Sequence[BaseMessage], limit: int) -> tuple[list[BaseMessage], bool]:
        """`fitted`, and whether anything had to leave."""
        system = _first_system(held)
        starts, since = (
            (range(len(held) + 1), exchanges(held)) if self._strict else (cuts(held), range(len(held)))
        )

        def kept(start: int) -> list[BaseMessage]:
            newest = [held[n] for n in range(start, len(held)) if since[n] >= start]
            return newest if system is None or system >= start else [held[system], *newest]

        def fits(n: int) -> bool:
            counted = kept(starts[n])
            if not self._count_system:
                counted = [message for message in counted if not isinstance(message, SystemMessage)]
            return not counted or self._fits(counted, limit)

        first = _first_fitting(len(starts) - 1, fits)
        shown = kept(starts[first])
        if len(shown) == 1 < len(held) and isinstance(shown[0], SystemMessage):
            self._warn(limit)
        return shown, first > 0

    @abstractmethod
    def _fits(self, messages: list[BaseMessage], limit: int) -> bool:
        """Whether messages are within the limit."""

    def _with_one_system(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """The messages as they are held when each was added in turn: with one system message."""
        own: int | None = None
        for n, message in enumerate(messages):
            if isinstance(message, SystemMessage) and (
                own is None or message.content != messages[own].content
            ):
                own = n
        held = [m for n, m in enumerate(messages) if n == own or not isinstance(m, SystemMessage)]
        if own is not None and self._keep_system_first:
            held.sort(key=lambda message: not isinstance(message, SystemMessage))
        return held

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
        max_messages: How many at most; or a function from the conversation's id to that number, called at
            each use.
        keep_system_first: Put a system message in front of all others.
        count_system: Whether the system message counts. It always stays, so in a window of one message
            nothing else is ever shown if it does; a warning is logged once.
        strict_tool_pairs: Never show a tool's result without its call, nor a call without its results.
        compat: "langchain4j" for exactly its lists; `strict_tool_pairs` is off then.

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
    """A window of the newest messages that have no more than so many tokens together.

    A message that is larger than the window does not fit, so nothing is shown when the newest one is.

    Args:
        max_tokens: How many at most; or a function from the conversation's id to that number, called at
            each use.
        token_counter: How many tokens a list of messages has: a function, which may count an overhead for
            each request but may not count less for more messages, or a language model. By default
            `langchain_core.messages.utils.count_tokens_approximately`.
        keep_system_first: Put a system message in front of all others.
        count_system: Whether the system message counts. It always stays, even if it is larger than the
            window.
        strict_tool_pairs: Never show a tool's result without its call, nor a call without its results.
        compat: "langchain4j" for exactly its lists; `strict_tool_pairs` is off then.

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
        counter: Any = count_tokens_approximately if token_counter is None else token_counter
        self._count = getattr(counter, "get_num_tokens_from_messages", counter)
        if not callable(self._count):
            raise InputError(
                f"token_counter={token_counter!r} cannot count; pass a function messages -> int, or a model"
            )

    def _fits(self, messages: list[BaseMessage], limit: int) -> bool:
        found = self._count(messages)
        try:
            return operator.index(found) <= limit
        except TypeError:
            raise InputError(
                f"the token_counter returned {found!r}; it has to return how many tokens the messages have"
            ) from None


@dataclass(frozen=True, slots=True)
class BoundWindow:
    """A window of one conversation, whose limit may depend on which it is."""

    window: LimitedWindow
    conversation_id: str

    def __call__(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """What is shown of the conversation."""
        return self.window(messages, self.conversation_id)

    @property
    def reads_from_end(self) -> bool:
        """Whether `from_end` is of use."""
        return self.window.reads_from_end

    def from_end(self, messages: Sequence[BaseMessage]) -> list[BaseMessage] | None:
        """The same from the newest messages alone; `None` if these are too few."""
        return self.window.from_end(messages, self.conversation_id)


def bound(window: Window | None, conversation_id: str) -> Window | None:
    """A window for one conversation: one whose limit depends on the conversation learns which it is.

    Raises:
        InputError: It is no window.
    """
    if window is not None and not callable(window):
        raise InputError(
            f"{window!r} is no window; pass MessageWindow(...), TokenWindow(...), "
            "or a function from messages to messages"
        )
    if window is None:
        return None
    return BoundWindow(window, conversation_id) if isinstance(window, LimitedWindow) else _checked(window)


def _checked(window: Window) -> Window:
    """A function as a window whose result is checked to be a list of messages."""

    def view(messages: list[BaseMessage]) -> list[BaseMessage]:
        kept: object = window(messages)
        shown = list(kept) if isinstance(kept, Iterable) else [kept]
        if not all(isinstance(message, BaseMessage) for message in shown):
            raise InputError(f"the window {window!r} returned {kept!r:.80}; return a list of messages")
        return cast("list[BaseMessage]", shown)

    return view


def _first_system(messages: Sequence[BaseMessage]) -> int | None:
    return next((n for n, message in enumerate(messages) if isinstance(message, SystemMessage)), None)


def _first_fitting(last: int, fits: Callable[[int], bool]) -> int:
    """The first of the positions 0 to `last` that fits; `last` does, and so do all after one that does.

    Looks from the end, in steps that double, so that the cost follows from what is kept.
    """
    step = 1
    while step <= last and fits(last - step):
        step *= 2
    known = last - step // 2
    return bisect_left(range(known), True, lo=max(last - step + 1, 0), key=fits)
