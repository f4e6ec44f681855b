"""The embedder: loaded at first use, unit vectors of one shape, and clear errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings

from langchain_threadmem.engine.embedder import Embedder
from langchain_threadmem.engine.flow import arun, run
from langchain_threadmem.engine.runtime import bare
from langchain_threadmem.errors import EmbeddingError

Embed = Callable[..., Any]


class Counting(Embeddings):
    """Counts its calls, and embeds questions and texts differently."""

    def __init__(self, make: Callable[[str], Any] = lambda text: [3.0, 4.0]) -> None:
        self.asked: list[str] = []
        self.make = make

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.asked += texts
        return [self.make(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.asked.append(f"?{text}")
        return list(self.make(text))


@pytest.fixture(params=["sync", "async"])
def embed(request: pytest.FixtureRequest) -> Embed:
    if request.param == "sync":
        return lambda embedder, *given, **options: run(embedder.embed(*given, **options), bare())
    return lambda embedder, *given, **options: asyncio.run(arun(embedder.embed(*given, **options), bare()))


def test_vectors_are_float32_of_unit_length(embed: Embed) -> None:
    found = embed(Embedder(Counting()), ["a", "b"])
    assert found.dtype == np.float32
    assert np.allclose(found, [[0.6, 0.8]] * 2)


def test_a_zero_vector_stays_zero(embed: Embed) -> None:
    assert embed(Embedder(Counting(lambda text: [0.0, 0.0])), ["a"]).tolist() == [[0.0, 0.0]]


def test_without_a_model_vectors_have_no_dimensions(embed: Embed) -> None:
    embedder = Embedder(False)
    assert embed(embedder, ["a", "b"]).shape == (2, 0)
    assert embedder.model == ""


def test_no_texts_are_no_vectors(embed: Embed) -> None:
    assert len(embed(Embedder(Counting()), [])) == 0


def test_a_text_is_embedded_once_in_a_while(embed: Embed) -> None:
    model = Counting()
    embedder = Embedder(model)
    embed(embedder, ["a", "b", "a"])
    embed(embedder, ["b", "c"])
    assert model.asked == ["a", "b", "c"]


def test_a_question_is_not_a_text(embed: Embed) -> None:
    model = Counting()
    embedder = Embedder(model)
    embed(embedder, ["a"])
    embed(embedder, ["a"], query=True)
    embed(embedder, ["a"], query=True)
    assert model.asked == ["a", "?a"]


def test_nothing_is_looked_for_before_it_is_needed() -> None:
    embedder = Embedder(Counting())
    assert not embedder.is_resolved
    run(embedder.embed(["a"]), bare())
    assert embedder.is_resolved


def failing(text: str) -> list[float]:
    raise ConnectionError("no network")


def short(text: str) -> list[float]:
    return [1.0] if text == "a" else [1.0, 2.0]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (failing, "no network"),
        (short, "failed with"),
        (lambda text: [float("nan"), 1.0], "not finite"),
        (lambda text: [float("inf"), 1.0], "not finite"),
        (lambda text: [[1.0]], "shape"),
        (lambda text: "vector", "failed with"),
    ],
)
def test_what_is_no_vector_is_an_embedding_error(embed: Embed, make: Callable[[str], Any], said: str) -> None:
    with pytest.raises(EmbeddingError, match=said):
        embed(Embedder(Counting(make)), ["a", "b"])


def test_a_missing_vector_is_an_embedding_error(embed: Embed) -> None:
    class Short(Counting):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return super().embed_documents(texts)[1:]

    with pytest.raises(EmbeddingError, match="2 texts"):
        embed(Embedder(Short()), ["a", "b"])


def test_a_failure_is_not_remembered(embed: Embed) -> None:
    model = Counting(failing)
    embedder = Embedder(model)
    with pytest.raises(EmbeddingError):
        embed(embedder, ["a"])
    model.make = lambda text: [1.0, 0.0]
    assert embed(embedder, ["a"]).tolist() == [[1.0, 0.0]]


def test_the_name_of_a_model_is_its_own_or_its_classes() -> None:
    named = Counting()
    named.model = "words-3"  # type: ignore[attr-defined]
    assert Embedder(named).model == "words-3"
    assert Embedder(Counting()).model.endswith("Counting")
