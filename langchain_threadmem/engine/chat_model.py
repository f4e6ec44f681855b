"""A question to a chat model whose answer has a schema.

Models are called through `with_structured_output`; a model without it gets the JSON schema in the prompt. A
missing, malformed or truncated answer is an `UnusableAnswerError`, whose text can be sent back to the model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from langchain_core.messages import BaseMessage, HumanMessage
from pydantic import BaseModel, ValidationError

from langchain_threadmem.common.inputs import check_no_class
from langchain_threadmem.common.usage import Purpose, Usage
from langchain_threadmem.engine.child_runs import run_config
from langchain_threadmem.engine.flow import Call, Flow
from langchain_threadmem.errors import InputError, ModelError
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.records import reason

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    Model: TypeAlias = str | BaseChatModel


SchemaT = TypeVar("SchemaT", bound=BaseModel)


class UnusableAnswerError(ModelError):
    """The answer of a model does not have the schema.

    Args:
        problem: The reason.
        prose: The answer, if it is whole and is plain text instead of JSON; else empty.
    """

    def __init__(self, problem: str, prose: str = "") -> None:
        super().__init__(problem)
        self.prose = prose


def check_model(model: Model) -> Model:
    """A chat model or the name of a model, checked.

    Raises:
        InputError: The argument is neither a name nor a chat model.
    """
    check_no_class("model", model)
    if not (isinstance(model, str) or hasattr(model, "invoke")):
        raise InputError(
            f"{model!r} is not a chat model; pass a BaseChatModel or a name such as 'openai:gpt-4o-mini'"
        )
    return model


_PROVIDERS = frozenset(
    {
        *{"anthropic", "anthropic_bedrock", "azure_ai", "azure_openai", "baseten", "bedrock", "cohere"},
        *{"bedrock_converse", "deepseek", "fireworks", "google_anthropic_vertex", "google_genai", "groq"},
        *{"google_vertexai", "huggingface", "ibm", "litellm", "meta", "mistralai", "nvidia", "ollama"},
        *{"openrouter", "perplexity", "together", "upstage", "xai"},
    }
)
"""The names of providers of `init_chat_model`, for programs without the package `langchain`."""


def chat_model(model: Model) -> BaseChatModel:
    """A chat model; for a name `ChatOpenAI`, or the class of the provider in `anthropic:claude-sonnet-4-5`.

    Raises:
        InputError: The argument is neither a name nor a chat model, or the model cannot be made: the
            package or the key of its provider is missing.
    """
    model = check_model(model)
    if not isinstance(model, str):
        return model
    try:
        return _of_provider(model) or _of_openai(model)
    except Exception as error:  # Each provider has its own errors.
        problem = reason(error) if isinstance(error, ValidationError) else error
        raise InputError(
            f"the model {model!r} cannot be used: {problem}; install the package of its provider and set its "
            "key, or pass a BaseChatModel"
        ) from error


def _of_openai(model: str) -> BaseChatModel:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model=model.removeprefix("openai:"))


def _of_provider(model: str) -> BaseChatModel | None:
    """The model of a provider; `None` for no provider: names of OpenAI and Ollama have colons too."""
    provider, colon, name = model.partition(":")
    if not colon:
        return None
    try:
        from langchain.chat_models import init_chat_model
    except ImportError:
        if provider in _PROVIDERS:
            raise
        return None
    try:
        chat: BaseChatModel = init_chat_model(name, model_provider=provider)
    except ValidationError:  # A ValueError of the provider, for example since a key is missing.
        raise
    except ValueError:
        return None
    return chat


def has_schemas(model: Model) -> bool:
    """Whether a model can be held to a schema by its tools or a JSON mode; a name is that of such a model."""
    return isinstance(model, str) or _structured(model, _Probe) is not None


class _Probe(BaseModel):
    """A schema to ask a model whether it takes schemas."""

    answer: str


def _structured(chat: Any, schema: type[BaseModel]) -> Any:
    """A model that is held to a schema; `None` if it has neither tools nor a JSON mode."""
    try:
        return chat.with_structured_output(schema, include_raw=True)
    except (NotImplementedError, AttributeError):  # Another runnable, such as `model.with_retry()`, lacks it.
        return None


def ask(
    model: Model,
    messages: Sequence[BaseMessage],
    schema: type[SchemaT],
    usage: Usage,
    purpose: Purpose,
    conversation: str = "",
    *,
    run_name: str,
) -> Flow[SchemaT]:
    """The answer of a model to a question.

    Args:
        model: A chat model, or the name of a model.
        usage: The statistics that count the call, even if it fails.
        conversation: The conversation for which the call is counted, if any.
        run_name: The name of the call for callback handlers, see `child_runs.run_config`.

    Raises:
        UnusableAnswerError: The answer is missing, malformed or truncated.
    """
    chat: Any = chat_model(model)
    prompt = list(messages)
    if (structured := _structured(chat, schema)) is None:
        structured = chat
        prompt.append(HumanMessage(_INSTRUCTION + json.dumps(schema.model_json_schema())))
    config = run_config(run_name, conversation)
    try:
        answer = yield from Call(
            lambda: structured.invoke(prompt, config), lambda: structured.ainvoke(prompt, config)
        )
    except Exception:
        usage.add(purpose, conversation, None)
        raise
    usage.add(purpose, conversation, _tokens(answer))
    return _parsed(answer, schema)


def _tokens(answer: Any) -> Mapping[str, Any] | None:
    raw = answer.get("raw") if isinstance(answer, dict) else answer
    return getattr(raw, "usage_metadata", None)


_INSTRUCTION = "Answer with one JSON object and nothing else, of this schema: "


def _parsed(answer: Any, schema: type[SchemaT]) -> SchemaT:
    raw = answer
    if isinstance(answer, dict) and "parsed" in answer:
        raw, answer, problem = answer.get("raw"), answer["parsed"], answer.get("parsing_error")
        _check_whole(raw)
        if answer is None and not (isinstance(raw, BaseMessage) and text_of(raw).strip()):
            raise UnusableAnswerError(
                f"there was no answer in the form of the schema{f' ({problem})' if problem else ''}."
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
        problem = f"it does not have the form of the schema: {reason(error)}."
        raise UnusableAnswerError(
            problem, _prose(text_of(raw)) if isinstance(raw, BaseMessage) else ""
        ) from error


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
            raise UnusableAnswerError(f"it is no valid JSON: {error}.", _prose(text)) from error
    raise UnusableAnswerError(f"it holds no JSON object: {text!r:.80}.", _prose(text))


def _prose(text: str) -> str:
    """The answer of a model in plain text, without its thoughts; empty if it begins like JSON.

    Example:
        >>> _prose("<think>Figs?</think> Figs grow in {hot} places."), _prose('```json {"title": ')
        ('Figs grow in {hot} places.', '')
    """
    # Models that are served without a parser of their thoughts, such as DeepSeek-R1, begin with these tags.
    said = text.rpartition("</think>")[2].strip()
    return "" if said.startswith(("{", "[", "`", "<think>")) else said
