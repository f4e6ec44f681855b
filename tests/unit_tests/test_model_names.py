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


def test_a_name_of_openai_needs_no_other_package(without_langchain: None) -> None:
    chats: list[Any] = [chat_model(name) for name in ("openai:gpt-4o-mini", "mistral:7b")]
    assert [chat.model_name for chat in chats] == ["gpt-4o-mini", "mistral:7b"]


def test_a_name_of_another_provider_needs_langchain(without_langchain: None) -> None:
    with pytest.raises(InputError, match=r"anthropic:claude.*langchain.*install"):
        chat_model("anthropic:claude-sonnet-4-5")


@pytest.mark.parametrize("name", ["gpt-4o-mini", "openai:gpt-4o-mini"])
def test_a_missing_key_is_an_error_that_names_the_model(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(InputError, match=f"{name}.*key"):
        chat_model(name)


@pytest.fixture
def without_langchain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package `langchain` is not installed."""
    plain = builtins.__import__

    def imported(name: str, *given: Any, **options: Any) -> Any:
        if name.partition(".")[0] == "langchain":
            raise ImportError(f"No module named {name!r}")
        return plain(name, *given, **options)

    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr(builtins, "__import__", imported)
