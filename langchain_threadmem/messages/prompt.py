"""The messages of a prompt: lists that every model provider accepts.

A window may cut a list anywhere. The current turn is always complete, because the model is answering it. Tool
calls and results form whole exchanges, because providers refuse others.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableWithFallbacks

from langchain_threadmem.messages.codec import clone, text_of
from langchain_threadmem.messages.quoting import OPENING, is_made_up
from langchain_threadmem.messages.tool_pairs import calls_tools, whole_exchanges
from langchain_threadmem.messages.windows import Window

_NO_CALL_ID = re.compile(r"[^a-zA-Z0-9_-]+")
_LONGEST_CALL_ID = 40
_NO_TEXT = "(no text)"
_SAME = [
    "anthropic",
    "cohere",
    "deepseek",
    "groq",
    "litellm",
    "mistralai",
    "ollama",
    "openai",
    "openrouter",
    "xai",
]
_PROVIDERS = {f"langchain_{name}": (name,) for name in _SAME} | {
    "langchain_aws": ("bedrock", "bedrock_converse"),
    "langchain_google_genai": ("google_genai", "google_vertexai"),
}
"""The names of providers in the metadata of answers, by the packages of their clients."""
_OPENING = HumanMessage(
    "(The conversation begins with a message of the assistant.)",
    id="threadmem-opening",
    additional_kwargs={"lc_source": OPENING},
)


def as_prompt(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The messages of a prompt as every model provider accepts them.

    Providers refuse or drop in silence what others accept. OpenAI, Anthropic, Gemini and Mistral all accept
    a list of this form:

    - System messages come first.
    - Then comes a human message. If the list begins with an answer, a marked message is put before it.
    - Tool exchanges are whole, see `tool_pairs.whole_exchanges`, and no call id occurs twice: of two calls
      with the id `call_0`, the second is `call_0_2`, and so is its result.
    - A call whose arguments could not be parsed is a call with the text of these arguments: some clients send
      it so, some with no arguments, and some not at all, which leaves its result alone.
    - Answers without content are left out, and so are empty texts and thoughts without their signature. A
      human message without content says that it has no text. A spoken answer that its provider no longer has
      is its transcript.
    - An answer that follows another answer is joined to it.
    - In a group chat, the texts of human messages begin with the name of the speaker, since most clients
      send no `name`.

    Args:
        messages: A list of messages, oldest first. The messages are not changed.

    Example:
        >>> call = AIMessage("", tool_calls=[{"name": "add", "args": {}, "id": "call_0"}])
        >>> result = ToolMessage("4", tool_call_id="call_0")
        >>> shown = as_prompt([HumanMessage("2+2?"), call, result, HumanMessage("1+3?"), call, result])
        >>> [message.tool_call_id for message in shown if message.type == "tool"]
        ['call_0', 'call_0_2']
    """
    spoken: list[BaseMessage] = [m for m in messages if not isinstance(m, SystemMessage)]
    first: list[BaseMessage] = [m for m in messages if isinstance(m, SystemMessage) and m.content]
    whole = [clean for m in whole_exchanges(spoken) if (clean := _without_empty(_readable(m))) is not None]
    if whole and not isinstance(whole[0], HumanMessage):
        first.append(_OPENING)
    return [*first, *_with_speakers(_with_unique_calls(_joined(whole)))]


def after_front(front: Sequence[BaseMessage], view: Sequence[BaseMessage]) -> list[BaseMessage]:
    """A prompt whose first messages, such as a summary, are not of the conversation.

    Args:
        front: The first messages.
        view: The result of `as_prompt`. Its opening message is left out behind a human message.

    Example:
        >>> view = as_prompt([AIMessage("two"), HumanMessage("three")])
        >>> [message.content for message in after_front([HumanMessage("summary of one")], view)]
        ['summary of one', 'two', 'three']
    """
    if any(isinstance(message, HumanMessage) for message in front):
        view = [message for message in view if message is not _OPENING]
    return [*front, *view]


def for_model(messages: Sequence[BaseMessage], model: object) -> list[BaseMessage]:
    """The messages for a chat model, with the answers of other providers as texts and calls.

    Most clients send content blocks that they do not know as they are, for example the search of another
    provider's server, or raise an error. No later request of the conversation then succeeds.

    Args:
        messages: A list of messages. The messages are not changed.
        model: The chat model. For one of an unknown package, all messages stay as they are, and so do answers
            that name no provider. With fallbacks of other providers, all answers are texts and calls.

    Example:
        >>> from langchain_openai import ChatOpenAI
        >>> thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
        >>> answer = AIMessage([thought, {"type": "text", "text": "Yes."}])
        >>> answer.response_metadata["model_provider"] = "anthropic"
        >>> for_model([answer], ChatOpenAI(api_key="none"))[0].content
        'Yes.'
    """
    own = _providers_of(model)
    if own is None:
        return [*messages]
    return [_plain(message) if _is_of_other(message, own) else message for message in messages]


def _providers_of(model: object) -> Collection[str] | None:
    """The names of the provider of a chat model in the metadata of its answers; `None` if it is unknown.

    Of a model with fallbacks, the names that all its models have: each of them is sent the same messages.
    """
    if isinstance(model, RunnableWithFallbacks):
        found = [_providers_of(one) for one in model.runnables]
        known_to_all = [{*names} for names in found if names is not None]
        return set.intersection(*known_to_all) if len(known_to_all) == len(found) else None
    if (bound := getattr(model, "bound", None)) is not None:
        return _providers_of(bound)
    classes = type(model).__mro__
    packages = [cls.__module__.partition(".")[0] for cls in classes]
    known = [package for package in packages if package in _PROVIDERS]
    # A client of another provider's models on AWS is a subclass of the client of that provider.
    return {
        name
        for package in (known if known[:1] == ["langchain_aws"] else known[:1])
        for name in _PROVIDERS[package]
    } or None


def _is_of_other(message: BaseMessage, own: Collection[str]) -> bool:
    if not isinstance(message, AIMessage):
        return False
    provider = message.response_metadata.get("model_provider")
    return isinstance(provider, str) and provider not in own


def _plain(message: BaseMessage) -> BaseMessage:
    return clone(message, content=text_of(message), additional_kwargs={}, response_metadata={})


def _readable(message: BaseMessage) -> BaseMessage:
    """An answer with its calls that could not be parsed as calls, which have a result that says so."""
    if not (isinstance(message, AIMessage) and message.invalid_tool_calls):
        return message
    calls = [
        {"name": call["name"] or "unknown", "args": {"unreadable": call["args"]}, "id": call["id"]}
        for call in message.invalid_tool_calls
        if call["id"]
    ]
    every = [*message.tool_calls, *({**call, "type": "tool_call"} for call in calls)]
    return clone(message, tool_calls=every, invalid_tool_calls=[])


def _without_empty(message: BaseMessage) -> BaseMessage | None:
    """A message without content that providers refuse; `None` if nothing is left of an answer."""
    content = message.content
    if isinstance(content, list):
        kept = [block for block in content if not _is_refused(block)]
        if len(kept) < len(content):
            message = clone(message, content=kept)
            content = kept
    is_empty = not content.strip() if isinstance(content, str) else all(map(_is_thought, content))
    if not is_empty or isinstance(message, ToolMessage) or calls_tools(message):
        return message
    if audio := message.additional_kwargs.get("audio"):
        return _without_empty(_transcript(message)) if _has_expired(audio) else message
    if isinstance(message, AIMessage):
        return None
    return clone(message, content=_NO_TEXT)


def _has_expired(audio: Any) -> bool:
    """Whether the provider no longer has a spoken answer, which it is sent by its id."""
    end = audio.get("expires_at") if isinstance(audio, dict) else None
    return isinstance(end, (int, float)) and end <= time.time()


def _transcript(message: BaseMessage) -> BaseMessage:
    extra = {key: value for key, value in message.additional_kwargs.items() if key != "audio"}
    return clone(message, content=text_of(message), additional_kwargs=extra)


def without_empty_answers(messages: Iterable[BaseMessage]) -> list[BaseMessage]:
    """The messages without the answers that have neither content nor calls.

    Example:
        >>> without_empty_answers([HumanMessage("", id="h1"), AIMessage("", id="a1")])
        [HumanMessage(content='', additional_kwargs={}, response_metadata={}, id='h1')]
    """
    return [
        message
        for message in messages
        if not isinstance(message, AIMessage)
        or (isinstance(message.content, str) and message.content.strip())
        or _without_empty(message) is not None
    ]


def _is_refused(block: Any) -> bool:
    """Whether a content block is an empty text, or a thought that its provider does not take back."""
    if isinstance(block, str):
        return not block.strip()
    if not isinstance(block, dict):
        return False
    if block.get("type") == "text":
        return not str(block.get("text") or "").strip()
    return block.get("type") == "thinking" and not block.get("signature")


def _joined(messages: Iterable[BaseMessage]) -> list[BaseMessage]:
    """The messages, with one answer in place of consecutive answers."""
    joined: list[BaseMessage] = []
    for message in messages:
        before = joined[-1] if joined else None
        if isinstance(message, AIMessage) and isinstance(before, AIMessage) and not calls_tools(before):
            first, second = before.content, message.content
            content: Any = [*_blocks(first), *_blocks(second)]
            if isinstance(first, str) and isinstance(second, str):
                content = "\n\n".join(filter(None, (first, second)))
            joined[-1] = clone(message, content=content)
        else:
            joined.append(message)
    return joined


def _blocks(content: str | list[Any]) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content


def _is_thought(block: Any) -> bool:
    """Whether a block is a thought, which is no answer by itself."""
    return isinstance(block, dict) and block.get("type") in ("thinking", "redacted_thinking", "reasoning")


def _with_unique_calls(messages: Sequence[BaseMessage]) -> Iterator[BaseMessage]:
    """The messages of whole exchanges, in which each call has an id of its own."""
    taken: Counter[str] = Counter()
    renamed: dict[str, list[str]] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            new = renamed.get(message.tool_call_id)
            id_ = new.pop(0) if new else message.tool_call_id
            yield message if id_ == message.tool_call_id else clone(message, tool_call_id=id_)
            continue
        if not (isinstance(message, AIMessage) and message.tool_calls):
            yield message
            continue
        renamed = {}
        for call in message.tool_calls:
            if call["id"]:
                renamed.setdefault(call["id"], []).append(_unique(call["id"], taken))
        if any(ids != [old] for old, ids in renamed.items()):
            message = _renamed(message, renamed)
        yield message


def _unique(id_: str, taken: Counter[str]) -> str:
    """An id that no earlier call has, of the characters that all providers accept."""
    plain = _NO_CALL_ID.sub("_", id_)[:_LONGEST_CALL_ID]
    new = plain
    while taken[new]:
        taken[plain] += 1
        end = f"_{taken[plain]}"
        new = plain[: _LONGEST_CALL_ID - len(end)] + end
    taken[new] += 1
    return new


def _renamed(message: AIMessage, renamed: Mapping[str, Sequence[str]]) -> BaseMessage:
    """An answer with other call ids, also in its content and in what its provider has added."""

    def calls(found: Iterable[Any]) -> list[Any]:
        new = {old: iter(ids) for old, ids in renamed.items()}
        return [{**call, "id": next(new[call["id"]])} if call.get("id") in new else call for call in found]

    content = message.content
    if isinstance(content, list):
        new = {old: iter(ids) for old, ids in renamed.items()}
        content = [_renamed_block(block, new) for block in content]
    extra = message.additional_kwargs
    if isinstance(extra.get("tool_calls"), list):
        extra = {**extra, "tool_calls": calls(extra["tool_calls"])}
    return clone(message, content=content, additional_kwargs=extra, tool_calls=calls(message.tool_calls))


def _renamed_block(block: Any, new: Mapping[str, Iterator[str]]) -> Any:
    if not isinstance(block, dict):
        return block
    for key in ("call_id", "id"):
        if isinstance(old := block.get(key), str) and old in new:
            return {**block, key: next(new[old], old)}
    return block


def _with_speakers(messages: Iterable[BaseMessage]) -> list[BaseMessage]:
    """The messages, with the names of the speakers in the texts of a group chat."""
    listed = list(messages)
    names = {message.name for message in listed if isinstance(message, HumanMessage) and message.name}
    if len(names) < 2:
        return listed
    return [_named(m) if isinstance(m, HumanMessage) and m.name and not is_made_up(m) else m for m in listed]


def _named(message: BaseMessage) -> BaseMessage:
    begin = f"{message.name}: "
    content = message.content
    if isinstance(content, str):
        return message if content.startswith(begin) else clone(message, content=begin + content)
    return clone(message, content=[{"type": "text", "text": begin}, *content])


def newest_human(messages: Sequence[BaseMessage]) -> int | None:
    """The position of the newest human message that was not made for a prompt, if any.

    Example:
        >>> from langchain_core.messages import AIMessage
        >>> newest_human([HumanMessage("Hello"), AIMessage("Hi!")])
        0
    """
    for index in range(len(messages) - 1, -1, -1):
        if isinstance(messages[index], HumanMessage) and not is_made_up(messages[index]):
            return index
    return None


def open_turn(messages: Sequence[BaseMessage]) -> int | None:
    """The position at which the turn begins that is being answered; `None` if the last message answers it.

    Example:
        >>> from langchain_core.messages import AIMessage
        >>> open_turn([HumanMessage("one"), AIMessage("two"), HumanMessage("three")])
        2
    """
    if not messages or (isinstance(messages[-1], AIMessage) and not calls_tools(messages[-1])):
        return None
    newest = newest_human(messages)
    return 0 if newest is None else newest


def shown(
    thread: Sequence[BaseMessage],
    turn: Sequence[BaseMessage],
    window: Window | None = None,
) -> list[BaseMessage]:
    """The messages of a thread that a model is shown.

    Args:
        thread: The messages before the turn, oldest first.
        turn: The human message that is being answered, and the calls and results after it.
        window: A function from messages to the messages that are shown; `None` for all messages. The window
            also gets the turn, to count it, but cannot remove its messages.

    Returns:
        The messages of the thread within the window, in complete tool exchanges, then the turn. If the window
        removes messages, the list begins with a human message: answers at its beginning are left out.

    Example:
        >>> from langchain_core.messages import AIMessage
        >>> thread, turn = [HumanMessage("one"), AIMessage("two")], [HumanMessage("three")]
        >>> [message.content for message in shown(thread, turn, lambda messages: messages[-2:])]
        ['three']
    """
    messages = whole_exchanges([*thread, *turn])
    if window is None:
        return messages
    turn_ids = {message.id for message in turn if message.id is not None}
    turn_objects = {id(message) for message in turn}
    viewed = list(window(messages))
    earlier = [
        message for message in viewed if message.id not in turn_ids and id(message) not in turn_objects
    ]
    if len(viewed) < len(messages):
        earlier = from_human(earlier)
    return whole_exchanges([*earlier, *turn])


def from_human(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """A list without the answers and tool results before its first human message.

    Example:
        >>> from langchain_core.messages import AIMessage
        >>> [message.content for message in from_human([AIMessage("two"), HumanMessage("three")])]
        ['three']
    """
    begin = next(
        (n for n, message in enumerate(messages) if isinstance(message, HumanMessage)), len(messages)
    )
    return [m for n, m in enumerate(messages) if n >= begin or isinstance(m, SystemMessage)]
