"""Content of messages as providers define it: text, or blocks of OpenAI, Anthropic, Google and others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.content_parts import (
    File,
    Other,
    Part,
    Reasoning,
    ToolResult,
    ToolUse,
    called,
)

Block = Mapping[str, Any]


def parts_of(content: Any) -> list[Part]:
    """The parts of the content of a message.

    Args:
        content: Text, a block, a list of texts and blocks, or `None`.

    Example:
        >>> parts_of([{"type": "thinking", "thinking": "91 = 7 * 13"}, {"type": "text", "text": "No."}])
        [Reasoning(text='91 = 7 * 13', summary=''), 'No.']
    """
    return [*_parts(content)]


def _parts(content: Any) -> Iterator[Part]:
    if content is None:
        return
    if isinstance(content, str):
        if content.strip():
            yield content
    elif isinstance(content, list):
        for block in content:
            yield from _parts(block)
    elif isinstance(content, dict):
        yield from _of_block(content)
    else:
        yield Other(content)


def _of_block(block: Block) -> Iterator[Part]:
    kind = str(block.get("type") or block.get("kind") or "")
    read = _BLOCKS.get(kind) or (_result if kind.endswith("_tool_result") else None)
    if read is not None:
        yield from read(block)
        return
    for name, (read, field) in _FIELDS.items():
        if (value := block.get(name)) is not None:
            inner = value if isinstance(value, dict) else {field: value}
            yield from read({"type": name, **inner} if read is _file else inner)
            return
    if not kind and block.get("thought") is True:
        yield from _text(block)
        return
    if any(name in kind for name in _MEDIA):
        transcript = text_in(block.get("transcript"))  # Of OpenAI's Realtime API.
        yield from [transcript] if transcript else []
        yield file_of(block, is_beside=bool(transcript))
        return
    text = text_in(block.get("text") or block.get("content"))
    if text:  # A text that a person or a model wrote is content, whatever the block is called.
        yield text
    if kind not in ("", "text") or not text:
        yield Other(block)


def text_in(value: Any) -> str:
    """A text, or the text of `{"value": ...}` or `{"text": ...}`; empty for other values.

    Example:
        >>> text_in("Hello"), text_in({"value": "Hello"}), text_in(None)
        ('Hello', 'Hello', '')
    """
    if isinstance(value, dict):
        value = value.get("value") or value.get("text")
    return value if isinstance(value, str) and value.strip() else ""


def file_of(block: Block, *, is_beside: bool = False) -> File:
    """A reference to a file, from a block or an entry of a list of files.

    Example:
        >>> str(file_of({"type": "input_image", "file_id": "file-1"}))
        '[image: file-1]'
    """
    inner = next((name for name in ("file", "source", "image_url", "inlineData") if name in block), "")
    both = {**fields.record(block, inner), **block}
    names = ("filename", "fileName", "file_name", "name", "displayName", "title", "path", "storageKey")
    name = fields.text(both, *names, "file_id", "file_uuid", "fileId", "id")
    if name is None:
        urls = (
            both.get(field) for field in ("url", "image_url", "fileUri", "file_url", "filepath", "imageUrl")
        )
        url = next((url for url in urls if isinstance(url, str) and not url.startswith("data:")), None)
        name = url.rstrip("/").rpartition("/")[2] if url else None
    types = " ".join(
        str(both.get(field) or "")
        for field in ("type", "mime_type", "mimeType", "media_type", "mediaType", "fileType", "mimetype")
    )
    medium = next((one for one in ("image", "audio", "video") if one in types.lower()), "file")
    return File(medium, name, dict(block), is_beside)


def files_of(values: Any) -> list[Part]:
    """References to files of a list beside the text."""
    files = values if isinstance(values, list) else []
    return [
        file_of(one, is_beside=True) if isinstance(one, dict) else File("file", str(one), is_beside=True)
        for one in files
        if one
    ]


def _text(block: Block) -> Iterator[Part]:
    if text := text_in(block.get("text")) or text_in(block.get("content")):
        yield Reasoning(text) if block.get("thought") is True else text


def _reasoning(block: Block) -> Iterator[Part]:
    summary = block.get("summary") or block.get("summaries")
    if isinstance(summary, list):
        summary = "\n\n".join(text for one in summary if (text := _summary(one)))
    contents = (
        block.get(name) for name in ("thinking", "reasoning", "think", "text", "content", "reasoning_content")
    )
    text = "\n\n".join(
        part if isinstance(part, str) else str(part.text)
        for content in contents
        for part in _parts(content)
        if isinstance(part, str | Reasoning)
    )
    summary = summary if isinstance(summary, str) else ""
    if not text:  # Mastra leaves the text empty.
        text = "\n\n".join(part for part in _parts(block.get("details")) if isinstance(part, str))
    if text or summary:
        yield Reasoning(text, summary)
    kept = {name: block[name] for name in ("signature", "encrypted_content", "data") if block.get(name)}
    if kept:
        yield Other({"type": block.get("type"), **kept})


def _summary(one: Any) -> str:
    return text_in(one.get("text") or one.get("summary")) if isinstance(one, dict) else text_in(one)


def _call(block: Block) -> Iterator[Part]:
    inner = next((name for name in ("tool_call", "toolCall", "function") if name in block), "")
    both = {**block, **fields.record(block, inner)}
    both |= fields.record(both, "function")
    id = fields.id_in(both, *_CALL_IDS)
    names = ("input", "arguments", "args", "parameters", "action", "tool_kwargs", "rawInput")
    arguments = next((both[name] for name in names if both.get(name) is not None), None)
    name = fields.text(both, *_TOOL_NAMES) or str(block.get("type"))
    field = next((one for one in ("output", "result", "error") if both.get(one) is not None), "")
    states = (both.get(name) for name in ("runStepStatus", "state", "status"))
    is_error = field == "error" or any(state in ("failed", "error") for state in states)
    yield from called(name, arguments, id, both.get(field), is_error)


_CALL_IDS = (
    *("toolCallRequestId", "call_id", "toolCallId", "tool_call_id", "toolUseId", "tool_use_id", "callId"),
    "id",
)
_TOOL_NAMES = ("name", "toolName", "tool_name")


def _result(block: Block) -> Iterator[Part]:
    names = ("content", "output", "result", "text", "tool_result")
    output = next((block[name] for name in names if block.get(name) is not None), "")
    is_error = bool(block.get("is_error") or block.get("isError") or block.get("status") == "error")
    yield ToolResult(output, fields.id_in(block, *_CALL_IDS), fields.text(block, *_TOOL_NAMES), is_error)


def _refusal(block: Block) -> Iterator[Part]:
    yield from parts_of(text_in(block.get("refusal")))


def _file(block: Block) -> Iterator[Part]:
    yield file_of(block)


def _nothing(block: Block) -> Iterator[Part]:
    return iter(())


def _of_function(block: Block) -> Iterator[Part]:
    yield ToolUse(str(block.get("name")), block.get("args"), fields.text(block, "id"))


def _of_response(block: Block) -> Iterator[Part]:
    output = block.get("response")
    if isinstance(output, dict) and len(output) == 1:
        output = next(iter(output.values()))
    yield ToolResult(output, fields.text(block, "id"), fields.text(block, "name"))


def _code(block: Block) -> Iterator[Part]:
    yield f"```{str(block.get('language') or '').lower()}\n{block.get('code') or ''}\n```"


def _code_result(block: Block) -> Iterator[Part]:
    if text := text_in(block.get("output")):
        yield f"```\n{text}\n```"


def _thought(block: Block) -> Iterator[Part]:
    yield from _reasoning({"type": "reasoning", **fields.record(block, "reasoningText")})


_MEDIA = ("image", "audio", "video", "file", "document", "media")
_READERS: dict[Callable[[Block], Iterator[Part]], str] = {
    _text: "text input_text output_text markdown Text summary_text",
    _reasoning: "thinking reasoning think reasoning_content redacted_thinking reasoning_text",
    _call: "tool_use tool_call tool-call toolCall function_call server_tool_use server_tool_call "
    "mcp_tool_use toolCallRequest tool_call_request",
    _result: "tool_result tool-result toolResult function_call_output server_tool_result tool-return "
    "toolCallResult tool_call_result",
    _file: "image image_url image_file input_image file input_file document",
    _refusal: "refusal",
    _nothing: "step-start token_budget flag",
}
_BLOCKS = {kind: read for read, kinds in _READERS.items() for kind in kinds.split()}
"""The readers of the blocks of a type."""
_FIELDS: dict[str, tuple[Callable[[Block], Iterator[Part]], str]] = {
    **dict.fromkeys(("functionCall", "function_call"), (_of_function, "name")),
    **dict.fromkeys(("functionResponse", "function_response"), (_of_response, "name")),
    **dict.fromkeys(("executableCode", "executable_code"), (_code, "code")),
    **dict.fromkeys(("codeExecutionResult", "code_execution_result"), (_code_result, "output")),
    **dict.fromkeys(("inlineData", "inline_data", "fileData", "file_data", "image_url"), (_file, "url")),
    **dict.fromkeys(("image", "document", "video", "audio"), (_file, "url")),
    "toolUse": (_call, "name"),
    "toolResult": (_result, "content"),
    "reasoningContent": (_thought, "text"),
    "cachePoint": (_nothing, ""),
}
"""The readers of blocks by a field, and the field of its value if that is no object."""
