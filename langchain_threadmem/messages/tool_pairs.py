"""Tool calls and their results: the call that a result answers, and the messages that stay together.

An *exchange* is an AI message that calls tools, and the results of its calls. Model providers refuse a list
with a result without its call, a call without its result, or a result that does not directly follow its call.
LangChain's converters also send calls whose arguments could not be parsed, so they need a result too.

`whole_exchanges` makes such a list acceptable without a change of its messages: a changed AI message would
lose the signature of its reasoning, or no longer equal the beginning of an earlier prompt.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.quoting import NO_RESULT

RESULT = "tool"
"""The message type of the result of a tool call."""
LONGEST_LINE, LONGEST_TEXT = 100, 400
"""The number of characters of one message, and of all messages of a turn, in `text_of_calls`."""


def call_ids(message: BaseMessage) -> set[str | None]:
    """The ids of the tool calls of a message, including calls that could not be parsed.

    Example:
        >>> call_ids(AIMessage("", tool_calls=[{"name": "add", "args": {}, "id": "c1"}]))
        {'c1'}
    """
    if not isinstance(message, AIMessage) or not (message.tool_calls or message.invalid_tool_calls):
        return set()
    return {call["id"] for call in (*message.tool_calls, *message.invalid_tool_calls)}


def calls_tools(message: BaseMessage) -> bool:
    """Whether tool results have to follow a message.

    Example:
        >>> calls_tools(AIMessage("Four"))
        False
    """
    return isinstance(message, AIMessage) and bool(message.tool_calls)


def text_of_calls(message: BaseMessage, before: str = "") -> str:
    """The arguments of tool calls and their results, as a text by which turns are compared.

    Each message has a line of at most 100 characters, and the text has at most 400: an argument such as a
    search term names the subject of a turn, while a complete result would outweigh the answer.

    Args:
        message: A message. A message that is neither a call nor a result adds nothing.
        before: The text of the earlier messages of the turn.

    Example:
        >>> call = AIMessage("", tool_calls=[{"name": "find", "args": {"in": "Oslo", "for": 3}, "id": "1"}])
        >>> print(text_of_calls(ToolMessage("two hotels", tool_call_id="1"), text_of_calls(call)))
        Oslo 3
        two hotels
    """
    if not (calls_tools(message) or isinstance(message, ToolMessage)):
        return before[:LONGEST_TEXT]
    line = " ".join(" ".join(_said(message)).split())[:LONGEST_LINE]
    return "\n".join(filter(None, (before, line)))[:LONGEST_TEXT]


def with_calls(answer: str, calls: str) -> str:
    """The text by which the answer of a turn with tool calls is compared: it often omits their subject."""
    return f"{calls}\n{answer}" if calls else answer


def _said(message: BaseMessage) -> Iterator[str]:
    if isinstance(message, ToolMessage):
        yield text_of(message)
    elif isinstance(message, AIMessage):
        for call in message.tool_calls:
            yield from _leaves(call["args"])


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _leaves(item)
    elif value is not None:
        yield str(value)


def exchanges(messages: Sequence[BaseMessage]) -> list[int]:
    """The position at which the exchange of each message begins.

    Returns:
        For a tool result the position of its call, which is the nearest earlier call with its id, or -1 if
        there is none; for any other message its own position.

    Example:
        >>> call = AIMessage("", tool_calls=[{"name": "add", "args": {}, "id": "c1"}])
        >>> exchanges([call, ToolMessage("4", tool_call_id="c1"), ToolMessage("5", tool_call_id="c2")])
        [0, 0, -1]
    """
    calls: dict[str | None, int] = {}
    starts: list[int] = []
    for n, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            starts.append(calls.get(message.tool_call_id, -1))
        else:
            starts.append(n)
            calls |= dict.fromkeys(call_ids(message), n)
    return starts


def end_of_results(messages: Sequence[BaseMessage], start: int) -> int:
    """The position after the consecutive results from a position on.

    Example:
        >>> end_of_results([ToolMessage("4", tool_call_id="c1"), AIMessage("Four")], 0)
        1
    """
    while start < len(messages) and isinstance(messages[start], ToolMessage):
        start += 1
    return start


def start_of_results(types: Sequence[str], end: int) -> int:
    """The position of the message before the consecutive results up to a position.

    Args:
        types: The types of messages.
        end: A position; returned unchanged if its message is not a result.

    Example:
        >>> start_of_results(["human", "ai", "tool", "tool"], 3)
        1
    """
    while end > 0 and types[end] == RESULT:
        end -= 1
    return end


def follows_call(messages: Sequence[BaseMessage]) -> bool:
    """Whether the last message is a result directly after its call, or after other results of its call.

    Example:
        >>> call = AIMessage("", tool_calls=[{"name": "add", "args": {}, "id": "c1"}])
        >>> follows_call([call, ToolMessage("4", tool_call_id="c1")])
        True
        >>> follows_call([call, AIMessage("Four"), ToolMessage("4", tool_call_id="c1")])
        False
    """
    call = exchanges(messages)[-1]
    return 0 <= call < len(messages) - 1 and end_of_results(messages, call + 1) == len(messages)


def whole_exchanges(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The messages in an order and with results that every model provider accepts.

    - Results directly follow their call. A later result of the same call replaces an earlier one.
    - A call without a result, which was stopped or could not be parsed, gets a `no_result`.
    - Results without their call are omitted.
    - Calls at the end of the list are still running: they need no result yet.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> call = AIMessage("", tool_calls=[{"name": "add", "args": {}, "id": "c1"}])
        >>> left = [call, HumanMessage("Never mind"), ToolMessage("4", tool_call_id="c0")]
        >>> [(message.type, message.content) for message in whole_exchanges(left)]
        [('ai', ''), ('tool', 'This call did not complete: it has no result.'), ('human', 'Never mind')]
    """
    if not _has_exchange(messages):  # The rest takes ten times as long.
        return list(messages)
    starts = exchanges(messages)
    results: dict[int, dict[str, BaseMessage]] = {}
    end = len(messages)
    for n, message in enumerate(messages):
        if not isinstance(message, ToolMessage):
            end = n
        elif starts[n] >= 0 and message.additional_kwargs.get("lc_source") != NO_RESULT:
            results.setdefault(starts[n], {})[message.tool_call_id] = message
    whole: list[BaseMessage] = []
    for n, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            continue
        whole.append(message)
        if not (isinstance(message, AIMessage) and (message.tool_calls or message.invalid_tool_calls)):
            continue
        found = results.get(n, {})
        whole += found.values()
        # The arguments that cannot be parsed hold up no running turn: only the other calls get results.
        is_running = n == end and not (found and found.keys() >= {call["id"] for call in message.tool_calls})
        if not is_running:
            calls = (*message.tool_calls, *message.invalid_tool_calls)
            whole += [no_result(message, call) for call in calls if call["id"] not in {None, *found}]
    return whole


def _has_exchange(messages: Sequence[BaseMessage]) -> bool:
    """Whether there is a tool call or a result among messages."""
    for message in messages:
        if isinstance(message, HumanMessage):
            continue
        if isinstance(message, AIMessage):
            if message.tool_calls or message.invalid_tool_calls:
                return True
        elif isinstance(message, ToolMessage):
            return True
    return False


def no_result(message: AIMessage, call: Mapping[str, Any]) -> ToolMessage:
    """The result of a call that has none: an error, made for a prompt and never stored."""
    is_invalid = call.get("type") == "invalid_tool_call"
    return ToolMessage(
        "This call was not made: its arguments could not be read."
        if is_invalid
        else "This call did not complete: it has no result.",
        id=f"no-result-{message.id}-{call['id']}",
        name=call["name"],
        tool_call_id=str(call["id"]),
        status="error",
        additional_kwargs={"lc_source": NO_RESULT},
    )


def cuts(messages: Sequence[BaseMessage]) -> list[int]:
    """The positions at which LangChain4j may cut a list; never between a call and its consecutive results.

    Example:
        >>> call = AIMessage("", tool_calls=[{"name": "add", "args": {}, "id": "c1"}])
        >>> cuts([call, ToolMessage("4", tool_call_id="c1"), AIMessage("Four")])
        [0, 2, 3]
    """
    positions = [0]
    while positions[-1] < len(messages):
        n = positions[-1]
        positions.append(end_of_results(messages, n + 1) if calls_tools(messages[n]) else n + 1)
    return positions


def with_results_below(rows: Iterable[tuple[int, int | None, str]], nodes: Collection[int]) -> set[int]:
    """The numbers of nodes of a tree, with the tool results below them.

    Args:
        rows: Number, parent and message type of each node, in the order of the numbers.

    Example:
        >>> rows = [(1, None, "human"), (2, 1, "ai"), (3, 2, "tool"), (4, 3, "ai")]
        >>> sorted(with_results_below(rows, {1, 2}))
        [1, 2, 3]
    """
    numbers = set(nodes)
    for number, parent, kind in rows:
        if kind == RESULT and parent in numbers:
            numbers.add(number)
    return numbers
