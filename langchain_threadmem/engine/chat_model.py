"""One structured question to a chat model.

Models that can are asked through `with_structured_output`; others are asked for JSON in their own words.
Either way the answer is checked here: a missing, malformed or cut-off answer is an
`UnusableAnswerError`, whose text can be sent back to the model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from langchain_core.messages import BaseMessage, HumanMessage
from pydantic import BaseModel, ValidationError

from langchain_threadmem.common.usage import Purpose, Usage
from langchain_threadmem.engine.flow import Call, Flow
from langchain_threadmem.errors import InputError, ModelError
from langchain_threadmem.messages.codec import text_of

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    Model: TypeAlias = str | BaseChatModel


S = TypeVar("S", bound=BaseModel)


class UnusableAnswerError(ModelError):
    """The model answered, but not with what was asked for."""


def check_model(model: Model) -> Model:
    """A chat model, or the name of one.

    Raises:
        InputError: It is neither.
    """
    if not (isinstance(model, str) or hasattr(model, "invoke")):
        raise InputError(f"{model!r} is no chat model; pass a BaseChatModel or the name of an OpenAI model")
    return model


def chat_model(model: Model) -> BaseChatModel:
    """The model itself, or `ChatOpenAI` for a name.

    Raises:
        InputError: It is neither a name nor a chat model.
    """
    model = check_model(model)
    if isinstance(model, str):
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(model=model)
    return model


def ask(
    model: Model,
    messages: Sequence[BaseMessage],
    schema: type[S],
    usage: Usage,
    purpose: Purpose,
    conversation: str = "",
) -> Flow[S]:
    """One question, one answer of the given shape.

    Args:
        model: A chat model, or the name of one.
        messages: The question.
        schema: The shape.
        usage: Where the call is counted, also if it fails.
        purpose: What for.
        conversation: In which conversation, if it is about one.

    Raises:
        UnusableAnswerError: The answer is missing, malformed, or was cut off by length.
    """
    asked: Any = chat_model(model)
    prompt = list(messages)
    structured = _structured(asked, schema)
    if structured is None:
        structured = asked
        prompt.append(HumanMessage(_JSON_PLEASE + json.dumps(schema.model_json_schema())))
    try:
        answer = yield from Call(lambda: structured.invoke(prompt), lambda: structured.ainvoke(prompt))
    except Exception:
        usage.add(purpose, conversation, None)
        raise
    usage.add(purpose, conversation, _tokens(answer))
    return _read(answer, schema)


def _tokens(answer: Any) -> Mapping[str, Any] | None:
    raw = answer.get("raw") if isinstance(answer, dict) else answer
    return getattr(raw, "usage_metadata", None)


_JSON_PLEASE = "Answer with one JSON object and nothing else, of this schema: "


def _structured(model: Any, schema: type[S]) -> Any:
    try:
        return model.with_structured_output(schema, include_raw=True)
    except NotImplementedError:
        return None  # A model without tools or a JSON mode: plain text will do.


def _read(answer: Any, schema: type[S]) -> S:
    raw = answer
    if isinstance(answer, dict) and "parsed" in answer:
        raw, answer, problem = answer.get("raw"), answer["parsed"], answer.get("parsing_error")
        _check_whole(raw)
        if answer is None and not (isinstance(raw, BaseMessage) and text_of(raw).strip()):
            raise UnusableAnswerError(
                f"there was no answer of the form asked for{f' ({problem})' if problem else ''}."
            )
        if answer is None:
            answer = raw
    if isinstance(answer, BaseMessage):
        _check_whole(answer)
        answer = _json_in(text_of(answer))
    if isinstance(answer, schema):
        return answer
    if answer is None:
        raise UnusableAnswerError("there was no answer.")
    try:
        return schema.model_validate(answer)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise UnusableAnswerError(f"it does not have the form asked for: {faults}.") from error


def _check_whole(message: Any) -> None:
    metadata = getattr(message, "response_metadata", None) or {}
    if metadata.get("finish_reason") == "length" or metadata.get("stop_reason") == "max_tokens":
        raise UnusableAnswerError("it was cut off by length; answer more briefly.")


def _json_in(text: str) -> Any:
    start = text.find("{")
    if start >= 0:
        try:
            return json.JSONDecoder().raw_decode(text, start)[0]
        except ValueError as error:
            raise UnusableAnswerError(f"it is no valid JSON: {error}.") from error
    raise UnusableAnswerError(f"it holds no JSON object: {text!r:.80}.")
