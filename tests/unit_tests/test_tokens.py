"""Tokens: the definition of a word."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_threadmem.index.language import STOP_WORDS, split, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Learning?", ["learning"]),
        ("scikit-learn, v1.5!", ["scikit", "learn", "v1", "5"]),
        ("GRÖSSE straße", ["grösse", "straße"]),
        ("東京 タワー", ["東京", "タワー"]),
        ("don't", ["don", "t"]),
        ("read_csv(path)", ["read_csv", "path"]),
        ("?! …", []),
        ("", []),
    ],
)
def test_words_are_runs_of_letters_and_digits_in_lower_case(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(st.text(st.sampled_from("ab'’_ 1é.-İß\u0301\n"), max_size=12))
def test_what_an_apostrophe_cuts_off_a_word_is_dropped(text: str) -> None:
    found = re.findall(r"\w+(?:['’][^\W_]+)*", text.lower())
    assert split(text) == [re.split("['’]", word)[0] for word in found]


def test_stop_words_are_words() -> None:
    assert all(words(word) == [word] for word in STOP_WORDS)
