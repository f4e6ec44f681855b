"""Words: what counts as one."""

from __future__ import annotations

import pytest

from langchain_threadmem.core.words import STOP_WORDS, words


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


def test_stop_words_are_words() -> None:
    assert all(words(word) == [word] for word in STOP_WORDS)
