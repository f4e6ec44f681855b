"""`embedding_history_length`: messages embedded together with the messages before them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_index import Counting

from langchain_threadmem import ChatMemory, MemorySettings, MemorySystem
from langchain_threadmem.errors import InputError

Wrap = Callable[[ChatMemory], Any]


def opened(url: str, owner: str, model: Counting, length: int = 2, **options: Any) -> MemorySystem:
    settings = {"embedding_history_length": length, "search_range": (None, None)}
    return MemorySystem(url, owner=owner, embeddings=model, settings=settings, **options)


def test_a_message_is_embedded_with_the_one_before(url: str, owner: str, verbs: Wrap) -> None:
    model = Counting()
    with opened(url, owner, model) as system:
        memory = verbs(system.conversation("c"))
        memory.append("stars", "helium")
        memory.append("bread", "flour")
        assert memory.flush() == 4
    assert model.texts == [
        "user: stars",
        "user: stars\nai: helium",
        "ai: helium\nuser: bread",
        "user: bread\nai: flour",
    ]


def test_what_is_before_a_message_is_what_it_answers(url: str, owner: str, verbs: Wrap) -> None:
    model = Counting()
    with opened(url, owner, model) as system:
        memory = verbs(system.conversation("c"))
        memory.append("stars", "helium")
        memory.append("bread", "flour")
        memory.checkout(2)
        memory.append("suns", "hydrogen")
        memory.flush()
    assert model.texts[4:] == ["ai: helium\nuser: suns", "user: suns\nai: hydrogen"]


def test_another_length_embeds_anew(url: str, owner: str) -> None:
    with opened(url, owner, Counting(), 1) as system:
        system.conversation("c").append("stars", "helium")
        assert system.flush() == 2
    with opened(url, owner, Counting(), 3) as system:
        assert system.flush() == 2
    with opened(url, owner, Counting(), 1) as system:
        assert system.flush() == 0


def test_recall_and_query_go_by_these_vectors(url: str, owner: str, verbs: Wrap) -> None:
    with opened(url, owner, Counting()) as system:
        memory = verbs(system.conversation("c"))
        memory.append("stars", "helium")
        memory.append("bread", "flour")
        alone, together = (
            next(hit.why.similarity for hit in memory.recall("stars", 4) if hit.node.id == 1),
            next(hit.why.similarity for hit in memory.recall("stars", 4) if hit.node.id == 2),
        )
        assert 0 < together < alone


def test_a_summary_is_embedded_in_brackets(url: str, owner: str) -> None:
    model = Counting()
    with opened(url, owner, model) as system:
        system.conversation("c").append("Stars are made of helium.", "Mostly of hydrogen.")
        summary = system.summarize_session("c")
        assert summary is not None
        system.flush()
    assert f"ai-summary: ({summary.content})" in model.texts


@pytest.mark.parametrize("purge", [False, True], ids=["forgotten", "purged"])
def test_what_is_forgotten_is_in_no_other_vector(url: str, owner: str, purge: bool, tmp_path: Path) -> None:
    model = Counting()
    with opened(url, owner, model, vectors=tmp_path) as system:
        memory = system.conversation("c")
        memory.append("stars", "helium")
        memory.append("bread", "flour")
        memory.recall("bread", 1, scope="owner")
        model.texts.clear()
        assert system.forget(0.25, purge=purge)
        memory.recall("bread", 1, scope="owner")
        assert "ai: helium" in model.texts
        assert not [text for text in model.texts if "stars" in text]
        assert system.verify().ok


def test_a_length_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="embedding_history_length=0"):
        MemorySettings(embedding_history_length=0)
