"""Summaries without a model: sentences of the text, deterministically."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from langchain_threadmem import ExtractiveSummarizer, MemorySystem, Summarizer
from langchain_threadmem.errors import InputError
from langchain_threadmem.summaries.summarizers import group_message
from langchain_threadmem.summaries.text_rank import extract, sentences

STORY = """\
The garden needs water. Rain fills the barrel in the garden. My cousin called.
We carry water from the barrel to the beds of the garden every evening. It was late. Nobody came."""


def test_it_keeps_the_sentences_that_share_most_with_the_others() -> None:
    assert extract(STORY, 1)[1] == ["We carry water from the barrel to the beds of the garden every evening."]
    title, kept = extract(STORY, 3)
    assert all("garden" in sentence for sentence in kept)
    assert title.startswith("Garden, water, barrel")


def test_who_speaks_is_no_tie_between_sentences() -> None:
    texts = [
        "user: Bread is flat.",
        "user: Rain again.",
        "ai: Bread wants time.",
        "ai: Flat bread wants time.",
    ]
    assert extract("\n\n".join(texts), 1)[1] == ["ai: Flat bread wants time."]


def test_a_message_gets_two_sentences_a_group_more() -> None:
    summarizer = ExtractiveSummarizer(sentences=4)
    assert isinstance(summarizer, Summarizer)
    one, many = summarizer.summarize(HumanMessage(STORY)), summarizer.summarize(group_message([STORY], ""))
    assert one is not None
    assert many is not None
    assert len(sentences(one.summary)) == 2
    assert len(sentences(many.summary)) == 4
    with pytest.raises(InputError, match="sentences=0"):
        ExtractiveSummarizer(sentences=0)


@pytest.mark.parametrize("text", ["", " \n "])
def test_nothing_is_said_about_nothing(text: str) -> None:
    assert ExtractiveSummarizer().summarize(HumanMessage(text)) is None


@given(st.text(max_size=300), st.integers(1, 5))
def test_what_it_says_was_said(text: str, most: int) -> None:
    title, kept = extract(text, most)
    found = sentences(text)
    assert [sentence for sentence in found if sentence in kept] == kept
    assert len(kept) == min(most, len(found))
    assert bool(title) == bool(found)
    assert extract(text, most) == (title, kept)


def test_a_text_of_20_000_sentences_is_summarised() -> None:
    text = "\n".join(f"word{n % 97} and word{n % 89} meet word{n % 83}." for n in range(20_000))
    assert len(extract(text, 5)[1]) == 5


def test_a_memory_without_a_model_summarises_with_it(system: MemorySystem) -> None:
    system.conversation("c").append("Why is my bread flat?", "Flat bread had too little time to rise.")
    root = system.summarize_session("c")
    assert root is not None
    assert "flat" in root.content
    assert system.usage.total.calls == 0
