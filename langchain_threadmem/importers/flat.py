"""Programs whose conversations are plain lists of messages: a table of what distinguishes them.

A row of `PROGRAMS` tells how a document is recognised, where its conversations and messages are, and how a
message is read. Everything else is the same for all: names, titles, times, models, calls with their
results, files.

The fields follow ChatGPTNextWeb/NextChat (app/store/chat.ts), enricoros/big-AGI
(src/modules/trade/trade.types.ts), janhq/jan, vercel/ai (UIMessage), CherryHQ/cherry-studio,
continuedev/continue, cline/cline, and the packages llama-index-core 0.14, semantic-kernel 1.45,
autogen-core 0.7 and haystack-ai 3.4 as they write. Those of TypingMind and Mistral are not confirmed by a
source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_threadmem.errors import InputError
from langchain_threadmem.importers.blocks import file_of, files_of, parts_of, text_in
from langchain_threadmem.importers.chats import (
    Bad,
    Chat,
    Chats,
    chained_id,
    chat_of,
    kept,
    local_time,
    seconds,
    text_or_none,
)
from langchain_threadmem.importers.parts import (
    ASSISTANT,
    SYSTEM,
    TOOL,
    USER,
    Other,
    Part,
    Reasoning,
    Result,
    Said,
    ToolUse,
    entries_of,
)
from langchain_threadmem.importers.source import FAULTS, Source, problem_of

_ROLES = {
    **dict.fromkeys(("user", "human", "you", "usermessage"), USER),
    **dict.fromkeys(("assistant", "ai", "bot", "model", "assistantmessage", "chatbot"), ASSISTANT),
    **dict.fromkeys(("system", "developer", "systemmessage"), SYSTEM),
    **dict.fromkeys(("tool", "function", "functionexecutionresultmessage"), TOOL),
}
_KEYS = ("id", "uuid", "messageId", "_id")
_NAMES = ("id", "chatID", "sessionId", "chatId", "conversationId")
_TITLES = ("topic", "userTitle", "autoTitle", "chatTitle", "title", "name")
_TIMES = ("createdAt", "created_at", "created", "ts", "timestamp", "date")
_MODELS = ("model", "originLLM", "modelId", "modelName")
_MODELS_OF_CHATS = ("model", "modelId")
Record = dict[str, Any]
Read = Callable[[Record], Iterable[Part]]


class Conversation(NamedTuple):
    """A conversation of a document.

    Attributes:
        record: The values of the conversation.
        messages: Its messages.
        name: Its name, if the record has none.
    """

    record: Record
    messages: Sequence[Any]
    name: str | None = None


class Program(NamedTuple):
    """A program.

    Attributes:
        name: The name of the format.
        contents: The contents of its files in a few words.
        fits: Whether a JSON value is a document, conversation or message of the program.
        conversations: The conversations of a document.
        parts: Reads the parts of a message.
        is_message: Whether the items of a file may be messages of one conversation.
        said: Reads the messages of a conversation that has siblings.
    """

    name: str
    contents: str
    fits: Callable[[Any], bool]
    conversations: Callable[[Record], Iterable[Conversation]]
    parts: Read
    is_message: Callable[[Any], bool] = lambda value: False
    said: Callable[[Conversation, Read, str], list[Said]] | None = None

    def chats(self, source: Source) -> Chats:
        """The conversations of a file."""
        messages: list[Any] = []
        for item in source.items():
            value = item.value
            if isinstance(value, InputError):
                yield Bad(str(value))
            elif self.is_message(value):
                messages.append(value)
            elif isinstance(value, list):
                yield from self._chats(Conversation({}, value), source, item.where)
            elif isinstance(value, dict):
                try:
                    found = [*self.conversations(value)]
                except FAULTS as error:
                    yield Bad(problem_of(error, item.where))
                    continue
                for number, conversation in enumerate(found, 1):
                    where = item.where if len(found) == 1 else f"conversation {number} of {item.where}"
                    yield from self._chats(conversation, source, where)
            else:
                yield Bad(f"{item.where} is {value!r:.80}, not a conversation")
        if messages:
            yield from self._chats(Conversation(_of_folder(source), messages), source, "the list of messages")

    def _chats(self, conversation: Conversation, source: Source, position: str) -> Chats:
        try:
            yield self._chat(conversation, source, position)
        except FAULTS as error:
            yield Bad(problem_of(error, position))

    def _chat(self, conversation: Conversation, source: Source, position: str) -> Chat:
        record = conversation.record
        name = conversation.name or _first(record, _NAMES) or source.name
        read = self.said or _chain
        said = read(conversation, self.parts, position)
        time = next((record[field] for field in _TIMES if record.get(field)), None)
        return chat_of(
            position,
            name,
            entries_of(said),
            title=_first(record, _TITLES),
            created=seconds(time, position),
            metadata=kept(
                model=_first(record, _MODELS_OF_CHATS)
                or next((one.model for one in said if one.model), None),
                folder=_first(record, ("folderID", "folderId", "workspaceDirectory")),
                starred=bool(record.get("starred") or record.get("isStarred")),
                pinned=bool(record.get("pinned") or record.get("isPinned")),
                tags=record.get("tags"),
            ),
        )


def _of_folder(source: Source) -> Record:
    """The record of a conversation whose messages are in a file of their own."""
    thread = source.beside("thread.json")
    return (
        {**thread, "created": thread.get("created_at") or thread.get("created")}
        if isinstance(thread, dict)
        else {}
    )


def _first(record: Mapping[str, Any], names: Iterable[str]) -> str | None:
    return next((text for name in names if (text := text_or_none(record.get(name)))), None)


def _chain(conversation: Conversation, read: Read, position: str) -> list[Said]:
    """The messages of a list, each of which continues the message before it."""
    said: list[Said] = []
    thoughts: list[Part] = []
    for number, item in enumerate(conversation.messages, 1):
        if not isinstance(item, dict):
            raise InputError(f"{position} has the message {item!r:.80}, which is no JSON object")
        if str(_role_in(item)).lower() == "thinking":
            thoughts += [Reasoning(part) if isinstance(part, str) else part for part in read(item)]
            continue
        one = said_of(item, said[-1].key if said else None, read, f"{position}, message {number}")
        if any(before.key == one.key for before in said):
            one.key = chained_id(one.parent, item)
        if one.role == ASSISTANT and thoughts:
            one.parts, thoughts = [*thoughts, *one.parts], []
        said.append(one)
    return said


def said_of(message: Record, previous: str | None, read: Read, position: str) -> Said:
    """A message that continues another message.

    Raises:
        InputError: The message has no role.
    """
    value = _role_in(message)
    role = _ROLES.get(str(value).lower(), None if value is None else str(value))
    if role is None:
        raise InputError(f"{position} has no role")
    parts = [*read(message)]
    if any(isinstance(part, Result) for part in parts) and role != ASSISTANT:
        role = TOOL if all(isinstance(part, Result) for part in parts) else role
    name = text_or_none(message.get("name")) or text_or_none(message.get("source"))
    return Said(
        _first(message, _KEYS) or chained_id(previous, message),
        previous,
        role,
        parts,
        _time(message, position),
        _first(message, _MODELS) if role == ASSISTANT else None,
        name if name is not None and name.lower() not in _ROLES else None,
        extra=kept(error=message.get("isError") or message.get("error"), starred=message.get("starred")),
    )


def _role_in(message: Record) -> Any:
    role = next((message[name] for name in ("role", "_role", "Role", "from") if message.get(name)), None)
    if isinstance(role, dict):
        role = role.get("Label") or role.get("label") or role.get("value")
    if role is None:
        kind = str(message.get("type") or "")
        role = kind if kind.lower() in _ROLES else message.get("sender")
    return role


def _time(message: Record, position: str) -> float | None:
    metadata = message.get("metadata")
    records = (message, metadata) if isinstance(metadata, dict) else (message,)
    value = next((one[name] for one in records for name in _TIMES if one.get(name)), None)
    time = seconds(value, position)
    return local_time(value) if time is None and isinstance(value, str) else time


def standard_parts(message: Record) -> Iterator[Part]:
    """The parts of a message with the fields of OpenAI, and of programs that follow them."""
    for name in ("reasoning_content", "reasoning", "thinking"):
        if isinstance(message.get(name), str) and message[name].strip():
            yield Reasoning(message[name])
    is_result = str(_role_in(message)).lower() in ("tool", "function")
    id = _first(message, ("tool_call_id", "toolCallId"))
    if is_result and id is not None:
        content = message.get("content")
        yield Result(
            content if content is not None else message.get("text"), id, text_or_none(message.get("name"))
        )
    else:
        content = message.get("content")
        yield from parts_of(content if content not in (None, "") else message.get("text"))
    for name in ("tool_calls", "toolCalls"):
        for call in message.get(name) or ():
            yield from parts_of({**call, "type": "tool_call"})
    for name in ("files", "attachments", "experimental_attachments"):
        yield from files_of(message.get(name))


# NextChat


def _is_nextchat(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("chat-next-web-store"), dict)


def _of_nextchat(value: Record) -> Iterator[Conversation]:
    for session in value["chat-next-web-store"].get("sessions") or ():
        mask = session.get("mask") if isinstance(session.get("mask"), dict) else {}
        config = mask.get("modelConfig")
        model = config.get("model") if isinstance(config, dict) else None
        record = {**session, "model": model, "created": None}
        yield Conversation(record, session.get("messages") or [])


def _parts_of_nextchat(message: Record) -> Iterator[Part]:
    for tool in message.get("tools") or ():
        if isinstance(tool, dict):
            yield from parts_of(
                {"type": "tool_call", "function": tool.get("function") or {}, "id": tool.get("id")}
            )
            if tool.get("content") is not None or tool.get("errorMsg"):
                output = tool.get("content") or tool.get("errorMsg")
                yield Result(output, text_or_none(tool.get("id")), None, bool(tool.get("isError")))
    yield from standard_parts(message)
    if message.get("audio_url"):
        yield file_of({"type": "audio", "url": message["audio_url"]}, is_beside=True)


# big-AGI


def _is_big_agi(value: Any) -> bool:
    return isinstance(value, dict) and "systemPurposeId" in value and isinstance(value.get("messages"), list)


def _parts_of_big_agi(message: Record) -> Iterator[Part]:
    fragments = message.get("fragments")
    if not isinstance(fragments, list):
        yield from parts_of(message.get("text"))
        return
    for fragment in fragments:
        part = fragment.get("part")
        part = part if isinstance(part, dict) else {}
        kind = part.get("pt")
        if kind == "text":
            yield from parts_of(part.get("text"))
        elif kind == "ma":
            yield Reasoning(str(part.get("aText") or ""))
        elif kind == "error":
            yield from parts_of(part.get("error"))
        elif kind == "tool_invocation":
            call = part.get("invocation") or {}
            name = text_or_none(call.get("name")) or str(call.get("type"))
            yield ToolUse(name, call.get("args") or call.get("code"), text_or_none(part.get("id")))
        elif kind == "tool_response":
            response = part.get("response") or {}
            yield Result(
                response.get("result"),
                text_or_none(part.get("id")),
                text_or_none(response.get("name")),
                bool(part.get("error")),
            )
        elif fragment.get("ft") == "attachment" or kind in ("reference", "image_ref", "doc"):
            value = {**fragment, "type": "image" if kind == "image_ref" else "file"}
            yield file_of(value, is_beside=fragment.get("ft") == "attachment")
        elif kind not in ("_pt_sentinel", "ph", None):
            yield Other(fragment)


# Jan


def _is_jan(value: Any) -> bool:
    return isinstance(value, dict) and value.get("object") == "thread.message"


def _parts_of_jan(message: Record) -> Iterator[Part]:
    yield from parts_of(message.get("content"))
    metadata = message.get("metadata")
    calls = metadata.get("tool_calls") if isinstance(metadata, dict) else None
    for call in calls if isinstance(calls, list) else ():
        inner = call.get("tool") if isinstance(call.get("tool"), dict) else call
        yield from parts_of({**inner, "type": "tool_call"})
        if isinstance(call.get("response"), dict):
            yield Result(call["response"].get("content"), text_or_none(inner.get("id")))


# TypingMind


def _is_typingmind(value: Any) -> bool:
    return _is_chat_of_typingmind(value) or (
        isinstance(value, dict)
        and isinstance(value.get("data"), dict)
        and isinstance(value["data"].get("chats"), list)
    )


def _is_chat_of_typingmind(value: Any) -> bool:
    return isinstance(value, dict) and "chatID" in value and isinstance(value.get("messages"), list)


def _of_typingmind(value: Record) -> Iterator[Conversation]:
    chats = [value] if _is_chat_of_typingmind(value) else value["data"]["chats"]
    return (Conversation(chat, chat.get("messages") or []) for chat in chats)


# Continue


def _is_continue(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("sessionId"), str)
        and isinstance(value.get("history"), list)
        and all(isinstance(one, dict) and isinstance(one.get("message"), dict) for one in value["history"])
    )


def _of_continue(value: Record) -> Iterator[Conversation]:
    messages: list[Record] = []
    for one in value["history"]:
        message = {**one["message"]}
        states = [state for state in one.get("toolCallStates") or () if isinstance(state, dict)]
        message.setdefault(
            "reasoning",
            (one.get("reasoning") or {}).get("text") if isinstance(one.get("reasoning"), dict) else None,
        )
        messages.append(message)
        answered = {entry["message"].get("toolCallId") for entry in value["history"]}
        for state in states:
            id = state.get("toolCallId")
            if state.get("output") is not None and id not in answered:
                texts = [item.get("content") for item in state["output"] if isinstance(item, dict)]
                messages.append(
                    {"role": "tool", "toolCallId": id, "content": [text for text in texts if text]}
                )
    yield Conversation(value, messages)


# Vercel's AI SDK


def _is_ai_message(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("role"), str)
        and isinstance(value.get("parts"), list)
        and all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in value["parts"])
        and "content_type" not in value
    )


def _is_ai_sdk(value: Any) -> bool:
    messages = (
        value.get("messages") if isinstance(value, dict) else value if isinstance(value, list) else None
    )
    if isinstance(messages, list):
        return bool(messages) and all(map(_is_ai_message, messages))
    return _is_ai_message(value)


def _parts_of_ai(message: Record) -> Iterator[Part]:
    for part in message["parts"]:
        kind = part["type"]
        if kind == "tool-invocation":
            part = {**part.get("toolInvocation", {}), "type": kind}
        if kind == "dynamic-tool" or kind.startswith("tool-"):
            name = text_or_none(part.get("toolName")) or kind.removeprefix("tool-")
            id = text_or_none(part.get("toolCallId"))
            yield ToolUse(name, part.get("input", part.get("args")), id)
            failed = part.get("errorText")
            output = part.get("output", part.get("result"))
            if failed is not None or output is not None:
                yield Result(output if failed is None else failed, id, name, failed is not None)
        elif kind in ("source-url", "source-document", "source"):
            yield Other(part)
        elif kind == "file":
            yield file_of(part)
        else:
            yield from parts_of(part)
    if not message["parts"]:
        yield from standard_parts(message)


# Cherry Studio


def _is_cherry(value: Any) -> bool:
    database = value.get("indexedDB") if isinstance(value, dict) else None
    return isinstance(database, dict) and isinstance(database.get("topics"), list)


def _of_cherry(value: Record) -> Iterator[Conversation]:
    database = value["indexedDB"]
    blocks = {one.get("id"): one for one in database.get("message_blocks") or () if isinstance(one, dict)}
    names = _topics_of_cherry(value)
    for topic in database["topics"]:
        messages = [
            {**message, "_blocks": [blocks[id] for id in message.get("blocks") or () if id in blocks]}
            if isinstance(message, dict)
            else message
            for message in topic.get("messages") or ()
        ]
        yield Conversation({**topic, **names.get(topic.get("id"), {})}, messages)


def _topics_of_cherry(value: Record) -> dict[Any, Record]:
    """The titles of topics, which are in the state of the assistants."""
    state = value.get("localStorage")
    text = state.get("persist:cherry-studio") if isinstance(state, dict) else None
    try:
        outer = _json(text)
        assistants = _json(outer.get("assistants")).get("assistants") or ()
        topics = [topic for one in assistants for topic in one.get("topics") or ()]
    except (AttributeError, TypeError):
        return {}
    return {topic.get("id"): {"name": topic.get("name"), "pinned": topic.get("pinned")} for topic in topics}


def _json(value: Any) -> Any:
    from langchain_threadmem.messages.records import loads

    try:
        return loads(value, "a state") if isinstance(value, str) else value or {}
    except InputError:
        return {}


def _parts_of_cherry(message: Record) -> Iterator[Part]:
    blocks = message.get("_blocks") or []
    if not blocks:
        yield from standard_parts(message)
        return
    for block in blocks:
        kind, content = block.get("type"), block.get("content")
        if kind in ("main_text", "code", "translation"):
            yield from parts_of(content)
        elif kind == "thinking":
            yield Reasoning(str(content or ""))
        elif kind == "tool":
            id = text_or_none(block.get("toolId"))
            yield ToolUse(text_or_none(block.get("toolName")) or "tool", block.get("arguments"), id)
            if content is not None:
                yield Result(content, id, text_or_none(block.get("toolName")))
        elif kind in ("file", "image", "video"):
            yield file_of(block, is_beside=kind == "file")
        else:
            yield Other(block)


def _said_of_cherry(conversation: Conversation, read: Read, position: str) -> list[Said]:
    """The messages of a topic: several answers to one question are siblings, and one of them is continued."""
    said: list[Said] = []
    previous: str | None = None
    asked: str | None = None
    is_chosen = False
    for item in conversation.messages:
        one = said_of(item, previous, read, position)
        model = item.get("model")
        one.model = (
            text_or_none(model.get("id") or model.get("name")) if isinstance(model, dict) else one.model
        )
        question = text_or_none(item.get("askId"))
        if one.role == ASSISTANT and question is not None and any(before.key == question for before in said):
            one.parent = question
            is_first = asked != question
            chosen = bool(item.get("foldSelected") or item.get("useful"))
            if is_first or chosen or not is_chosen:
                previous, is_chosen = one.key, chosen or (is_chosen and not is_first)
            asked = question
        else:
            previous = one.key
        said.append(one)
    return said


# LlamaIndex


def _is_llamaindex(value: Any) -> bool:
    if isinstance(value, dict) and isinstance(value.get("chat_store"), dict):
        value = value["chat_store"]
    store = value.get("store") if isinstance(value, dict) else None
    return isinstance(store, dict) and all(isinstance(one, list) for one in store.values())


def _of_llamaindex(value: Record) -> Iterator[Conversation]:
    store = value.get("chat_store", value)["store"]
    return (Conversation({}, messages, str(key)) for key, messages in store.items())


def _parts_of_llamaindex(message: Record) -> Iterator[Part]:
    extra = message.get("additional_kwargs")
    extra = extra if isinstance(extra, dict) else {}
    if id := text_or_none(extra.get("tool_call_id")):
        blocks = message.get("blocks")
        texts = (
            [block.get("text") for block in blocks if isinstance(block, dict)]
            if isinstance(blocks, list)
            else []
        )
        output = "\n\n".join(text for text in texts if isinstance(text, str)) or message.get("content")
        yield Result(output, id, text_or_none(extra.get("name")))
        return
    blocks = message.get("blocks")
    if not isinstance(blocks, list):
        yield from parts_of(message.get("content"))
    for block in blocks if isinstance(blocks, list) else ():
        kind = block.get("block_type")
        if kind == "tool_call":
            id = text_or_none(block.get("tool_call_id"))
            yield ToolUse(str(block.get("tool_name")), block.get("tool_kwargs"), id)
        else:
            yield from parts_of({**block, "type": kind})
    for call in extra.get("tool_calls") or ():
        yield from parts_of({**call, "type": "tool_call"})


# Semantic Kernel


def _is_semantic_kernel(value: Any) -> bool:
    messages = (
        value.get("messages") if isinstance(value, dict) else value if isinstance(value, list) else None
    )
    return _is_kernel_message(value) or (
        isinstance(messages, list) and bool(messages) and all(map(_is_kernel_message, messages))
    )


def _is_kernel_message(value: Any) -> bool:
    return isinstance(value, dict) and (
        (isinstance(value.get("items"), list) and "content_type" in value)
        or (isinstance(value.get("Items"), list) and isinstance(value.get("Role"), dict))
    )


def _parts_of_kernel(message: Record) -> Iterator[Part]:
    for item in message.get("items") or message.get("Items") or ():
        kind = str(item.get("content_type") or item.get("$type") or "").lower().removesuffix("content")
        id = text_or_none(item.get("id") or item.get("Id") or item.get("call_id") or item.get("CallId"))
        name = text_or_none(item.get("name") or item.get("FunctionName"))
        if kind in ("function_call", "functioncall"):
            yield ToolUse(name or "tool", item.get("arguments", item.get("Arguments")), id)
        elif kind in ("function_result", "functionresult"):
            id = text_or_none(item.get("CallId")) or id
            yield Result(item.get("result", item.get("Result")), id, name)
        elif kind in ("reasoning", "streaming_reasoning"):
            yield Reasoning(str(item.get("text") or ""))
        elif text := text_in(item.get("text") or item.get("Text")):
            yield text
        elif kind != "text":
            yield from parts_of({**item, "type": kind})


# AutoGen


_EVENTS = ("TextMessage", "MultiModalMessage", "StopMessage", "HandoffMessage", "ToolCallSummaryMessage")
_TOOL_EVENTS = {"ToolCallRequestEvent": ASSISTANT, "ToolCallExecutionEvent": TOOL, "ThoughtEvent": "thinking"}


def _is_autogen(value: Any) -> bool:
    return (
        isinstance(value, dict) and ("llm_context" in value or "agent_states" in value) and "version" in value
    )


def _of_autogen(value: Record) -> Iterator[Conversation]:
    if "agent_states" not in value:
        yield Conversation({}, (value["llm_context"] or {}).get("messages") or [])
        return
    states = value["agent_states"]
    threads = [_thread_of(state) for state in states.values()]
    thread = max((one for one in threads if one), key=len, default=None)
    if thread is not None:
        messages = [_with_role(one) for one in thread if one.get("type") in (*_EVENTS, *_TOOL_EVENTS)]
        yield Conversation({}, messages)
        return
    for name, state in states.items():
        inner = state.get("agent_state", state)
        context = inner.get("llm_context") if isinstance(inner, dict) else None
        if isinstance(context, dict) and context.get("messages"):
            yield Conversation({}, context["messages"], str(name))


def _thread_of(state: Any) -> list[Record] | None:
    """The messages that all agents of a team have seen."""
    thread = state.get("message_thread") if isinstance(state, dict) else None
    return thread if isinstance(thread, list) else None


def _with_role(event: Record) -> Record:
    source = str(event.get("source"))
    role = _TOOL_EVENTS.get(str(event.get("type"))) or (USER if source == USER else ASSISTANT)
    return {**event, "role": role}


def _parts_of_autogen(message: Record) -> Iterator[Part]:
    if isinstance(message.get("thought"), str):
        yield Reasoning(message["thought"])
    content = message.get("content")
    for one in content if isinstance(content, list) else [content]:
        if isinstance(one, dict) and "call_id" in one:
            id, name = text_or_none(one["call_id"]), text_or_none(one.get("name"))
            yield Result(one.get("content"), id, name, bool(one.get("is_error")))
        elif isinstance(one, dict) and "arguments" in one:
            yield ToolUse(str(one.get("name")), one["arguments"], text_or_none(one.get("id")))
        elif isinstance(one, dict) and "data" in one:
            yield file_of({**one, "type": "image"})
        else:
            yield from parts_of(one)


# Haystack


def _is_haystack(value: Any) -> bool:
    messages = (
        value.get("messages") if isinstance(value, dict) else value if isinstance(value, list) else None
    )
    if isinstance(messages, list):
        return bool(messages) and all(map(_is_haystack_message, messages))
    return _is_haystack_message(value)


def _is_haystack_message(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if "_role" in value and isinstance(value.get("_content"), list):
        return True
    content = value.get("content")
    return (
        isinstance(value.get("role"), str)
        and isinstance(content, list)
        and "meta" in value
        and all(isinstance(one, dict) and "type" not in one for one in content)
    )


def _parts_of_haystack(message: Record) -> Iterator[Part]:
    content = message.get("content")
    for one in content if content is not None else message.get("_content") or ():
        if isinstance(call := one.get("tool_call"), dict):
            yield ToolUse(str(call.get("tool_name")), call.get("arguments"), text_or_none(call.get("id")))
        elif isinstance(result := one.get("tool_call_result"), dict):
            origin = result.get("origin") or {}
            id, name = text_or_none(origin.get("id")), text_or_none(origin.get("tool_name"))
            yield Result(result.get("result"), id, name, bool(result.get("error")))
        elif isinstance(thought := one.get("reasoning"), dict):
            yield Reasoning(str(thought.get("reasoning_text") or ""))
        elif "image" in one or "file" in one:
            yield file_of(
                {**(one.get("image") or one.get("file") or {}), "type": "image" if "image" in one else "file"}
            )
        else:
            yield from parts_of(one)


# Mistral


def _is_mistral(value: Any) -> bool:
    return _is_mistral_message(value) or (
        isinstance(value, list) and bool(value) and all(map(_is_mistral_message, value))
    )


def _is_mistral_message(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("role"), str)
        and "parentId" in value
        and "version" in value
    )


def _parts_of_mistral(message: Record) -> Iterator[Part]:
    chunks = message.get("contentChunks")
    parts = parts_of(chunks)
    yield from (
        parts if any(isinstance(part, str) for part in parts) else [*parts_of(message.get("content")), *parts]
    )
    yield from files_of(message.get("files"))


def _said_of_mistral(conversation: Conversation, read: Read, position: str) -> list[Said]:
    """The messages of a chat with their parents; another version of a message is a sibling."""
    said: list[Said] = []
    for item in conversation.messages:
        one = said_of(item, said[-1].key if said else None, read, position)
        if item.get("parentId") is not None or not said:
            one.parent = text_or_none(item.get("parentId"))
        said.append(one)
    return said


# Cline


def _is_cline(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and "ts" in value
        and "role" in value
        and isinstance(value.get("content"), list | str)
    )


def _parts_of_cline(message: Record) -> Iterator[Part]:
    for part in standard_parts(message):
        if isinstance(part, str) and part.lstrip().startswith("<environment_details>"):
            yield Other({"type": "environment_details", "text": part})
        elif isinstance(part, str):
            yield part.strip().removeprefix("<task>").removesuffix("</task>").strip()
        else:
            yield part


def _itself(value: Record) -> Iterator[Conversation]:
    yield Conversation(value, value.get("messages") or [])


PROGRAMS = (
    Program("nextchat", "NextChat's backup", _is_nextchat, _of_nextchat, _parts_of_nextchat),
    Program("big_agi", "big-AGI's backup", _is_big_agi, _itself, _parts_of_big_agi),
    Program("jan", "messages.jsonl of a thread of Jan", _is_jan, _itself, _parts_of_jan, _is_jan),
    Program("typingmind", "TypingMind's export", _is_typingmind, _of_typingmind, standard_parts),
    Program("continue", "a session of Continue", _is_continue, _of_continue, standard_parts),
    Program(
        "cherry", "Cherry Studio's backup", _is_cherry, _of_cherry, _parts_of_cherry, said=_said_of_cherry
    ),
    Program("llamaindex", "LlamaIndex's chat store", _is_llamaindex, _of_llamaindex, _parts_of_llamaindex),
    Program(
        "semantic_kernel",
        "Semantic Kernel's chat history",
        _is_semantic_kernel,
        _itself,
        _parts_of_kernel,
        _is_kernel_message,
    ),
    Program("autogen", "AutoGen's state of an agent or a team", _is_autogen, _of_autogen, _parts_of_autogen),
    Program(
        "haystack", "Haystack's messages", _is_haystack, _itself, _parts_of_haystack, _is_haystack_message
    ),
    Program(
        "mistral",
        "chats of Mistral's export",
        _is_mistral,
        _itself,
        _parts_of_mistral,
        _is_mistral_message,
        _said_of_mistral,
    ),
    Program("ai_sdk", "messages of Vercel's AI SDK", _is_ai_sdk, _itself, _parts_of_ai, _is_ai_message),
    Program(
        "cline", "api_conversation_history.json of Cline", _is_cline, _itself, _parts_of_cline, _is_cline
    ),
)
"""The programs; a file is of the first program that fits."""
