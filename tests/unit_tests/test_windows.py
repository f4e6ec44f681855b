"""Windows: laws for every conversation, and each rule separately.

`reference` is a slow, simple window: it adds and evicts message by message.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    trim_messages,
)
from langchain_core.messages.utils import count_tokens_approximately

from langchain_threadmem import (
    ChatMemory,
    MemorySystem,
    MessageWindow,
    MessageWindowChatMemory,
    ThreadMemChatMessageHistory,
    TokenWindow,
    TokenWindowChatMemory,
)
from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.windows import LimitedWindow, bound

Counter = Callable[[list[BaseMessage]], int]


def calling(*ids: str, text: str = "") -> AIMessage:
    return AIMessage(text, tool_calls=[{"name": "look", "args": {}, "id": one} for one in ids])


def result(call: str, text: str = "r") -> ToolMessage:
    return ToolMessage(text, tool_call_id=call)


def letters(messages: Sequence[BaseMessage]) -> int:
    return sum(len(str(message.content)) for message in messages)


def with_overhead(messages: Sequence[BaseMessage]) -> int:
    return 3 + letters(messages)


TEXT = st.integers(1, 6).map(lambda n: "x" * n)
CALLS = st.lists(st.sampled_from("abc"), min_size=1, max_size=2, unique=True)
SPOKEN = st.one_of(
    st.builds(HumanMessage, TEXT),
    st.builds(AIMessage, TEXT),
    st.builds(lambda ids, text: calling(*ids, text=text), CALLS, TEXT),
    st.builds(result, st.sampled_from("abc"), TEXT),
)
SYSTEM = st.integers(1, 3).map(lambda n: SystemMessage("s" * n))
TALK = st.lists(st.one_of(SPOKEN, SPOKEN, SPOKEN, SYSTEM), max_size=16)
TALK_WITH_ONE_SYSTEM = st.lists(
    st.one_of(SPOKEN, SPOKEN, st.builds(SystemMessage, st.just("ss"))), max_size=16
)
COUNTERS = st.sampled_from([None, letters, with_overhead])  # None: by number of messages
LIMITS = st.integers(1, 12)
COMPAT = st.sampled_from([None, "langchain4j"])


def window_of(counter: Counter | None, limit: int, **options: Any) -> LimitedWindow:
    return MessageWindow(limit, **options) if counter is None else TokenWindow(limit, counter, **options)


def owner_of(held: Sequence[BaseMessage], n: int) -> BaseMessage | None:
    """The call of a result at a position."""
    for message in reversed(held[:n]):
        if isinstance(message, AIMessage) and held[n].tool_call_id in {c["id"] for c in message.tool_calls}:
            return message
    return None


def evict(held: list[BaseMessage], fits: Callable[[list[BaseMessage]], bool], compat: str | None) -> None:
    def orphans() -> list[BaseMessage]:
        return [m for n, m in enumerate(held) if m.type == "tool" and owner_of(held, n) is None]

    def drop(gone: list[BaseMessage]) -> None:
        held[:] = [m for m in held if not any(m is one for one in gone)]

    if compat is None:
        drop(orphans())
    while held and not fits(held):
        first = 1 if held[0].type == "system" else 0
        if len(held) == first:
            return
        gone = held[first]
        answers = [m for n, m in enumerate(held) if m.type == "tool" and owner_of(held, n) is gone]
        del held[first]
        if compat is None:
            drop(answers)
        elif isinstance(gone, AIMessage) and gone.tool_calls:
            while len(held) > first and held[first].type == "tool":
                del held[first]


def reference(
    said: Sequence[BaseMessage], limit: int, counter: Counter | None, compat: str | None, first: bool = False
) -> list[BaseMessage]:
    held: list[BaseMessage] = []
    for message in said:
        if message.type == "system":
            old = next((m for m in held if m.type == "system"), None)
            if old is not None and old.content == message.content:
                continue
            held = [m for m in held if m is not old]
        held.insert(0 if first and message.type == "system" else len(held), message)
        evict(held, lambda held: (len(held) if counter is None else counter(held)) <= limit, compat)
    return held


def same(found: Sequence[BaseMessage], expected: Sequence[BaseMessage]) -> bool:
    return [id(message) for message in found] == [id(message) for message in expected]


@given(TALK, LIMITS, COUNTERS, st.booleans())
def test_under_compat_a_window_is_the_reference(
    said: list[BaseMessage], limit: int, counter: Counter | None, first: bool
) -> None:
    window = window_of(counter, limit, keep_system_first=first, compat="langchain4j")
    assert same(window(said), reference(said, limit, counter, "langchain4j", first))


@given(TALK_WITH_ONE_SYSTEM, LIMITS, COUNTERS, st.booleans())
def test_a_window_is_the_reference_with_whole_tool_exchanges(
    said: list[BaseMessage], limit: int, counter: Counter | None, first: bool
) -> None:
    window = window_of(counter, limit, keep_system_first=first)
    assert same(window(said), reference(said, limit, counter, None, first))


@given(TALK, LIMITS, st.booleans())
def test_a_message_window_is_the_reference_whatever_the_system_messages(
    said: list[BaseMessage], limit: int, first: bool
) -> None:
    assert same(
        MessageWindow(limit, keep_system_first=first)(said), reference(said, limit, None, None, first)
    )


@given(TALK, LIMITS, COUNTERS, COMPAT, st.booleans())
def test_a_memory_that_is_told_message_by_message_is_the_reference(
    said: list[BaseMessage], limit: int, counter: Counter | None, compat: Any, first: bool
) -> None:
    options: dict[str, Any] = {"keep_system_first": first, "compat": compat}
    memory = (
        MessageWindowChatMemory(limit, **options)
        if counter is None
        else TokenWindowChatMemory(limit, counter, **options)
    )
    for n, message in enumerate(said):
        memory.add(message)
        assert same(memory.messages, reference(said[: n + 1], limit, counter, compat, first))


@given(TALK, LIMITS, COUNTERS, st.booleans())
def test_no_window_splits_a_tool_exchange(
    said: list[BaseMessage], limit: int, counter: Counter | None, count_system: bool
) -> None:
    shown = window_of(counter, limit, count_system=count_system)(said)
    for n, message in enumerate(shown):
        if message.type == "tool":
            owner = owner_of(shown, n)
            assert owner is not None
            place = next(n for n, m in enumerate(said) if m is message)
            assert owner is owner_of(said, place)
    for n, message in enumerate(said):
        if message.type == "tool" and any(m is owner_of(said, n) for m in shown):
            assert any(m is message for m in shown)


@given(TALK, LIMITS, COUNTERS, COMPAT, st.booleans())
def test_no_window_exceeds_its_limit_but_for_a_system_message_alone(
    said: list[BaseMessage], limit: int, counter: Counter | None, compat: Any, count_system: bool
) -> None:
    shown = window_of(counter, limit, compat=compat, count_system=count_system)(said)
    counted = [m for m in shown if count_system or m.type != "system"]
    alone = [m.type for m in counted] == ["system"]
    assert not counted or alone or (len if counter is None else counter)(counted) <= limit


@given(TALK, LIMITS, COUNTERS, COMPAT)
def test_a_window_leaves_order_and_the_list_as_they_are(
    said: list[BaseMessage], limit: int, counter: Counter | None, compat: Any
) -> None:
    before = list(said)
    shown = window_of(counter, limit, compat=compat)(said)
    assert same(said, before)
    places = [next(n for n, m in enumerate(said) if m is message) for message in shown]
    assert places == sorted(places)


@given(TALK, LIMITS, COUNTERS, COMPAT)
def test_what_a_window_shows_fits_it(
    said: list[BaseMessage], limit: int, counter: Counter | None, compat: Any
) -> None:
    window = window_of(counter, limit, compat=compat)
    shown = window.fitted(said, limit)
    assert same(window.fitted(shown, limit), shown)


@given(TALK, LIMITS, COUNTERS, st.integers(0, 15), st.booleans())
def test_the_end_of_a_talk_tells_what_is_shown_of_all_of_it(
    said: list[BaseMessage], limit: int, counter: Counter | None, left_out: int, count_system: bool
) -> None:
    said = [m for m in said if m.type != "system"]
    system: list[BaseMessage] = [SystemMessage("s")]
    window = window_of(counter, limit, count_system=count_system)
    for front in ([], system):
        shown = window.from_end([*front, *said[left_out:]], "talk")
        assert shown is None or same(shown, window([*front, *said]))


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 60))
def test_a_token_window_shows_as_much_as_fits(sizes: list[int], limit: int) -> None:
    said = [HumanMessage("x" * size) for size in sizes]
    shown = TokenWindow(limit, with_overhead)(said)
    assert same(shown, said[len(said) - len(shown) :])
    if len(shown) < len(said):
        assert with_overhead(said[len(said) - len(shown) - 1 :]) > limit


def test_only_what_is_near_the_end_is_counted() -> None:
    counted: list[int] = []

    def count(messages: list[BaseMessage]) -> int:
        counted.append(len(messages))
        return len(messages)

    assert len(TokenWindow(20, count)([HumanMessage("x") for _ in range(5000)])) == 20
    assert sum(counted) < 300


def test_r17_a_window_of_one_shows_a_system_message_and_nothing_else_unless_it_does_not_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    said = [SystemMessage("s"), HumanMessage("one"), AIMessage("two")]
    window = MessageWindow(1)
    with caplog.at_level(logging.WARNING, "langchain_threadmem"):
        assert window(said) == said[:1]
        assert window(said) == said[:1]
    assert [record.getMessage() for record in caplog.records] == [
        "only the system message is left in a window of maxMessages=1; raise the limit, "
        "or pass count_system=False"
    ]
    assert MessageWindow(1, count_system=False)(said) == [said[0], said[2]]


def test_a_system_message_that_does_not_count_uses_no_tokens() -> None:
    said = [SystemMessage("s" * 99), HumanMessage("one"), AIMessage("two")]
    assert TokenWindow(3, letters, count_system=False)(said) == [said[0], said[2]]
    assert TokenWindow(6, letters, count_system=False)(said) == said


def test_r18_results_leave_with_their_call_wherever_they_stand() -> None:
    call, late = calling("a", "b"), result("b")
    said = [SystemMessage("s"), call, result("a"), HumanMessage("u"), late]
    strict, exact = MessageWindow(3), MessageWindow(3, compat="langchain4j")
    assert strict(said) == [said[0], said[3]]
    assert exact(said) == [said[0], said[3], late]
    assert MessageWindow(3, strict_tool_pairs=False)(said) == exact(said)


def test_r18_a_result_that_has_no_call_is_not_shown() -> None:
    orphan = result("a")
    assert MessageWindow(3)([orphan]) == []
    assert MessageWindow(3, compat="langchain4j")([orphan]) == [orphan]
    assert MessageWindow(3)([orphan, calling("a")]) == [calling("a")]


def test_a_call_id_that_is_used_again_belongs_to_the_newest_call() -> None:
    said = [calling("a"), result("a", "old"), calling("a"), result("a", "new")]
    assert MessageWindow(3)(said) == said[2:]


def test_a_call_that_waits_for_results_is_shown() -> None:
    said = [HumanMessage("u"), calling("a", "b"), result("a")]
    assert MessageWindow(3)(said) == said
    assert MessageWindow(2)(said) == said[1:]


def test_a_result_of_a_call_with_unreadable_arguments_has_a_call() -> None:
    broken = {"name": "look", "args": "{", "id": "a", "error": "no JSON", "type": "invalid_tool_call"}
    said = [AIMessage("", invalid_tool_calls=[broken]), result("a")]
    assert MessageWindow(2)(said) == said


@pytest.mark.parametrize("window", [MessageWindow, TokenWindow])
@pytest.mark.parametrize("limit", [0, -1, None, 2.5, True, "3"])
def test_a_limit_that_is_not_greater_than_zero_is_refused_at_once(window: Any, limit: Any) -> None:
    name = "maxMessages" if window is MessageWindow else "maxTokens"
    with pytest.raises(InputError, match=f"^{name} must be greater than zero, but is: {limit}$"):
        window(limit)


def test_a_limit_may_depend_on_the_conversation_and_is_asked_for_at_each_use() -> None:
    limits = {"short": 1, "long": 3}
    window = MessageWindow(lambda conversation_id: limits[conversation_id])
    said = [HumanMessage(text) for text in "abcd"]
    assert window(said, "short") == said[3:]
    assert window(said, "long") == said[1:]
    limits["short"] = 2
    assert window(said, "short") == said[2:]
    limits["short"] = 0
    for _ in range(2):
        with pytest.raises(InputError, match="maxMessages must be greater than zero, but is: 0"):
            window(said, "short")


def test_r21_tokens_are_counted_by_a_function_by_a_model_or_approximately() -> None:
    class Model(FakeListChatModel):
        def get_num_tokens_from_messages(self, messages: list[BaseMessage], tools: Any = None) -> int:
            return letters(messages)

    said = [HumanMessage("x" * 10) for _ in range(9)]
    for counter in (letters, Model(responses=[])):
        assert len(TokenWindow(30, counter)(said)) == 3
    shown = TokenWindow(30)(said)
    assert count_tokens_approximately(shown) <= 30 < count_tokens_approximately(said[-len(shown) - 1 :])


DATA = "iVBORw0KGgo+/" * 50_000
ATTACHED: list[dict[str, Any]] = [
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}},
    {"type": "input_audio", "input_audio": {"data": DATA, "format": "wav"}},
    {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{DATA}"}},
    {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": DATA}},
    {"type": "media", "mime_type": "video/mp4", "data": DATA.encode()},
    {"type": "thinking", "thinking": "Let me see.", "signature": DATA},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": DATA},
]


@pytest.mark.parametrize("block", ATTACHED, ids=lambda block: block["type"])
def test_encoded_data_counts_as_an_image(block: dict[str, Any]) -> None:
    said = [HumanMessage("Hello"), AIMessage("Hi!"), HumanMessage([block])]
    assert TokenWindow(200)(said) == said
    assert TokenWindow(80)(said) == []


@pytest.mark.parametrize(
    "block",
    [
        {"type": "thinking", "thinking": "Let me see, this is a long story. " * 1000},
        {"type": "text", "text": DATA},
        DATA,
    ],
    ids=["thinking", "text", "str"],
)
def test_text_counts_in_full(block: Any) -> None:
    assert TokenWindow(5000)([HumanMessage("Hello"), AIMessage([block])]) == []


@pytest.mark.parametrize("counter", [7, "len", object()])
def test_what_cannot_count_is_refused(counter: Any) -> None:
    with pytest.raises(InputError, match="cannot count"):
        TokenWindow(30, counter)


@pytest.mark.parametrize("counted", [None, 2.5, "7"])
def test_a_count_that_is_no_whole_number_is_refused(counted: Any) -> None:
    with pytest.raises(InputError, match="token_counter returned"):
        TokenWindow(30, lambda messages: counted)([HumanMessage("x")])


def test_an_unknown_compat_is_refused() -> None:
    with pytest.raises(InputError, match="compat='langchain'"):
        MessageWindow(3, compat="langchain")  # type: ignore[arg-type]


def test_r22_a_window_may_begin_with_an_answer_where_trim_messages_would_not() -> None:
    said = [HumanMessage("one"), AIMessage("two"), HumanMessage("three")]
    trimmed = trim_messages(said, max_tokens=2, token_counter=len, start_on="human")
    assert trimmed == said[2:]
    assert MessageWindow(2)(said) == said[1:]


def test_a_function_stays_what_it_is_and_a_window_learns_its_conversation() -> None:
    def own(messages: list[BaseMessage]) -> list[BaseMessage]:
        return messages

    said: list[BaseMessage] = [HumanMessage("one")]
    function = bound(own, "talk")
    assert function is not None
    assert function(said) == said
    assert bound(None, "talk") is None
    view = bound(MessageWindow(len), "abc")
    assert view is not None
    assert len(view([HumanMessage("x")] * 9)) == 3


def test_a_memory_shows_its_thread_through_the_window_and_keeps_its_history(system: MemorySystem) -> None:
    memory = system.conversation("talk", window=MessageWindow(3))
    memory.append(SystemMessage("s"))
    for n in range(4):
        memory.append(f"u{n}", f"a{n}")
    assert [message.content for message in memory.messages] == ["s", "u3", "a3"]
    assert len(memory.history) == 9


@pytest.mark.parametrize("compat", [None, "langchain4j"])
@pytest.mark.parametrize("size", [1, 20, 63, 64, 65, 200, 599, 600, 601, 900])
def test_of_a_long_thread_the_window_shows_its_end(size: int, compat: Any) -> None:
    with MemorySystem(embeddings=False) as system:
        memory = system.conversation("talk")
        memory.append(SystemMessage("s"))
        for n in range(300):
            memory.append(f"u{n}", f"a{n}")
        said = memory.messages
        limited = system.conversation("talk", window=MessageWindow(size, compat=compat, count_system=False))
        assert limited.messages == [said[0], *said[1:][-size:]]


def test_a_result_whose_call_is_far_above_is_not_lost() -> None:
    memory = ChatMemory(window=MessageWindow(500), embeddings=False)
    memory.append("u", calling("c"), *(f"a{n}" for n in range(100)), result("c"))
    assert [message.type for message in memory.messages[:4]] == ["human", "ai", "tool", "ai"]
    assert len(memory.messages) == 103


def test_a_window_that_grows_shows_what_it_had_hidden() -> None:
    limits = [1]
    memory = ChatMemory(window=MessageWindow(lambda conversation_id: limits[0]), embeddings=False)
    memory.append("one", "two")
    assert len(memory.messages) == 1
    limits[0] = 5
    assert len(memory.messages) == 2


def test_each_conversation_has_its_own_limit(system: MemorySystem) -> None:
    window = MessageWindow({"short": 1, "long": 3}.__getitem__)
    for name, expected, of_whole_turns in (("short", 1, 0), ("long", 3, 2)):
        memory = system.conversation(name, window=window)
        memory.extend(["one", ("ai", "two"), "three", ("ai", "four")])
        assert len(memory.messages) == expected
        history = ThreadMemChatMessageHistory(name, system, window=window)
        assert len(history.messages) == of_whole_turns  # A question follows, so it begins with a question.
