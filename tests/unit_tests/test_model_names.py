"""Names of chat models: of OpenAI, and with their provider, as LangChain's agents take them."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

from langchain_threadmem.engine.chat_model import chat_model
from langchain_threadmem.errors import InputError


@pytest.mark.parametrize(
    ("name", "kind", "model"),
    [
        ("gpt-4o-mini", "ChatOpenAI", "gpt-4o-mini"),
        ("openai:gpt-4o-mini", "ChatOpenAI", "gpt-4o-mini"),
        ("anthropic:claude-sonnet-4-5", "ChatAnthropic", "claude-sonnet-4-5"),
        # A fine-tuned model, and models of a server of Ollama, which takes requests of ChatOpenAI.
        ("ft:gpt-4o-mini:figs::1", "ChatOpenAI", "ft:gpt-4o-mini:figs::1"),
        ("mistral:7b", "ChatOpenAI", "mistral:7b"),
    ],
)
def test_a_name_is_that_of_a_model_of_its_provider(
    monkeypatch: pytest.MonkeyPatch, name: str, kind: str, model: str
) -> None:
    for provider in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{provider}_API_KEY", "none")
    chat: Any = chat_model(name)
    assert (type(chat).__name__, getattr(chat, "model_name", None) or chat.model) == (kind, model)


def test_a_provider_whose_package_is_missing_is_named() -> None:
    with pytest.raises(InputError, match=r"ibm:.*langchain-ibm"):
        chat_model("ibm:granite")


def test_a_name_of_openai_needs_no_other_package(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = builtins.__import__

    def without_langchain(name: str, *given: Any, **options: Any) -> Any:
        if name.partition(".")[0] == "langchain":
            raise ImportError(name)
        return plain(name, *given, **options)

    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr(builtins, "__import__", without_langchain)
    chat: Any = chat_model("openai:gpt-4o-mini")
    assert chat.model_name == "gpt-4o-mini"
