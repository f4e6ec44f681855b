"""Words and ranking: what counts as a word, and how scores become an order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_threadmem.core.ranking import Corpus, bm25, fuse, z_scores
from langchain_threadmem.core.words import STOP_WORDS, query_words, words

TEXT = st.text(max_size=80)
SCORES = st.lists(st.floats(0, 100, width=32), min_size=1, max_size=20)


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


def test_a_query_loses_its_common_words_unless_nothing_else_is_left() -> None:
    assert query_words("What did we say about the CSV file, and the file?") == ["csv", "file"]
    assert query_words("what about it") == ["what", "about", "it"]
    assert query_words("what about it", stop_words=()) == ["what", "about", "it"]
    assert query_words("...") == []


@given(TEXT)
def test_a_query_holds_each_of_its_words_once_and_no_others(text: str) -> None:
    found = query_words(text)
    assert len(set(found)) == len(found)
    assert set(found) <= set(words(text))
    assert bool(found) == bool(words(text))
    assert not set(found) & STOP_WORDS or set(words(text)) <= STOP_WORDS


def test_rare_words_count_more_than_common_ones_and_none_count_against() -> None:
    corpus = Corpus(100, 1000, {"rare": 1, "common": 60, "everywhere": 100})
    rarities = [corpus.rarity(word) for word in ("unseen", "rare", "common", "everywhere")]
    assert rarities == sorted(rarities, reverse=True)
    assert rarities[-1] > 0


def test_a_document_without_a_query_word_scores_nothing() -> None:
    scores = bm25(["csv"], [["read", "csv"], ["tea"], []], Corpus(3, 3, {"csv": 1}))
    assert [score.score > 0 for score in scores] == [True, False, False]
    assert [score.shared for score in scores] == [("csv",), (), ()]


def test_shared_words_are_told_rarest_first() -> None:
    corpus = Corpus(10, 100, {"a": 9, "b": 1, "c": 4})
    assert bm25(["a", "b", "c"], [["a", "b", "c", "d"]], corpus)[0].shared == ("b", "c", "a")


def test_a_word_said_often_counts_more_but_ever_less() -> None:
    corpus = Corpus(10, 40, {"x": 3})
    one, two, nine = (bm25(["x"], [["x"] * n + ["y"] * (9 - n)], corpus)[0].score for n in (1, 2, 9))
    assert one < two < nine < 9 * one


def test_of_two_that_say_it_once_the_shorter_scores_higher() -> None:
    short, long = bm25(["x"], [["x"], ["x"] + ["y"] * 30], Corpus(10, 40, {"x": 2}))
    assert short.score > long.score


def test_the_formula_is_bm25() -> None:
    corpus = Corpus(4, 12, {"x": 1})
    expected = math.log(1 + 3.5 / 1.5) * 2.2 / (1 + 1.2 * (0.6 + 0.4 * 2 / 3))
    assert bm25(["x"], [["x", "y"]], corpus)[0].score == pytest.approx(expected)


def test_an_empty_corpus_and_an_empty_query_score_nothing() -> None:
    assert bm25([], [["a"]], Corpus(0, 0, {}))[0].score == 0
    assert bm25(["a"], [], Corpus(0, 0, {})) == []


@given(SCORES)
def test_z_scores_keep_the_order_and_have_mean_zero(values: list[float]) -> None:
    scores = z_scores(np.array(values, dtype=np.float64))
    assert np.isfinite(scores).all()
    assert abs(float(scores.sum())) < 1e-6 * len(values)
    assert all(
        scores[n] <= scores[m] + 1e-9 for n, a in enumerate(values) for m, b in enumerate(values) if a <= b
    )


@given(SCORES)
def test_without_vectors_the_words_decide(lexical: list[float]) -> None:
    assert fuse(lexical, None).tolist() == lexical


def test_with_equal_words_meaning_decides_and_the_other_way_round() -> None:
    assert np.argmax(fuse([1.0, 1.0, 1.0], np.array([0.1, 0.9, 0.2], np.float32))) == 1
    assert np.argmax(fuse([0.0, 0.0, 3.0], np.array([0.5, 0.5, 0.5], np.float32))) == 2


def test_the_weight_says_how_much_meaning_counts() -> None:
    lexical, meaning = [2.0, 0.0], np.array([0.0, 1.0], np.float32)
    assert np.argmax(fuse(lexical, meaning, weight=0.5)) == 0
    assert np.argmax(fuse(lexical, meaning, weight=2.0)) == 1


def test_nothing_to_rank_gives_nothing() -> None:
    assert fuse([], np.array([], np.float32)).tolist() == fuse([], None).tolist() == []
