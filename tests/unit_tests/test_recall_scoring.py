"""Postings and scores: neighbours, people, dates, kinds of chat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from langchain_threadmem.index.documents import DocumentRow, document_of
from langchain_threadmem.index.language import ENGLISH
from langchain_threadmem.recall.candidates import likely_keys
from langchain_threadmem.recall.postings import REACH, SESSION, Postings
from langchain_threadmem.recall.question import question_of
from langchain_threadmem.recall.scoring import assistance, parts_of, people_parts, scores, turn_parts
from langchain_threadmem.recall.weights import ASSISTANT, PEOPLE

SMALL_TALK = ("The weather is mild.", "Supper was good.", "Trains were late.", "Music helps.")
LONG = " ".join(f"word{n} explains detail{n} of the matter." for n in range(60))


def ledger_of(
    texts: Sequence[Any], times: Sequence[float] | None = None, segments: Sequence[int] | None = None
) -> Postings:
    """Postings of texts in turns; a pair is (speaker, text)."""
    ledger = Postings()
    for n, one in enumerate(texts):
        name, text = one if isinstance(one, tuple) else (None, one)
        message = (HumanMessage if n % 2 == 0 else AIMessage)(text, name=name)
        key = ((segments[n] if segments else 1) << 24) | n
        gist = document_of(message, text, times[n] if times else 0.0, ENGLISH)
        ledger.add([DocumentRow(key, n + 1, n or None, message.type, True, gist)])
    return ledger


def score(ledger: Postings, query: str, cosine: Any = None) -> list[float]:
    newest = float(ledger.rows["time"].max())
    asked = question_of(query, ENGLISH, ledger.names, newest, newest)
    parts = parts_of(ledger, asked, ledger.figures(asked.terms), cosine)
    return [float(value) for value in scores(ledger, asked, parts)]


def best(ledger: Postings, query: str) -> int:
    return int(np.argmax(score(ledger, query)))


def test_every_part_has_a_weight_and_every_weight_a_part() -> None:
    ledger = ledger_of(["a", "b"])
    asked = question_of("a", ENGLISH)
    parts = parts_of(ledger, asked, ledger.figures(asked.terms), np.zeros(2))
    assert set(people_parts(ledger, asked, parts)) == set(PEOPLE)
    assert set(turn_parts(ledger, asked, parts)) == set(ASSISTANT)


def test_a_message_that_holds_every_term_once_scores_about_one() -> None:
    ledger = ledger_of(["red kite", *SMALL_TALK])
    asked = question_of("red kite", ENGLISH)
    own = parts_of(ledger, asked, ledger.figures(asked.terms)).own
    assert own[0] == pytest.approx(1, abs=0.3)
    assert not own[1:].any()


def test_rare_terms_count_more_than_common_ones() -> None:
    ledger = ledger_of(["tea again", "tea kite", "tea pot", "tea cup", "kite"])
    assert best(ledger, "tea kite") == 1
    assert score(ledger, "tea kite")[4] > score(ledger, "tea kite")[2]


def test_code_counts_for_less_than_what_was_said() -> None:
    filler = ["..."] * 20
    ledger = ledger_of(["Please parse it.", "ok", *filler, "Look: ```parse```", "ok", *filler])
    asked = question_of("parse", ENGLISH)
    own = parts_of(ledger, asked, ledger.figures(asked.terms)).own
    assert own[0] > own[22] > 0


def test_what_stands_beside_a_match_scores_above_what_does_not() -> None:
    ledger = ledger_of([*SMALL_TALK * 3, "My kite tore.", "It was the storm.", *SMALL_TALK * 3])
    found = score(ledger, "kite")
    assert found[13] > max(found[0:6] + found[22:])


def test_another_session_is_no_neighbourhood() -> None:
    times = [0.0] * 4 + [2 * SESSION] * 4
    ledger = ledger_of([*SMALL_TALK[:3], "My kite tore.", *SMALL_TALK], times)
    asked = question_of("kite", ENGLISH)
    window = parts_of(ledger, asked, ledger.figures(asked.terms)).window
    assert window[2] > 0
    assert not window[4:].any()


def test_another_thread_is_no_neighbourhood() -> None:
    ledger = ledger_of([*SMALL_TALK[:3], "My kite tore.", *SMALL_TALK], segments=[1] * 4 + [2] * 4)
    asked = question_of("kite", ENGLISH)
    assert not parts_of(ledger, asked, ledger.figures(asked.terms)).window[4:].any()


@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=40))
def test_a_neighbourhood_is_a_triangle(values: list[float]) -> None:
    ledger = ledger_of(["a"] * len(values))
    around = ledger.around(np.array(values), REACH)
    for n in range(len(values)):
        expected = sum(
            value * (1 - abs(n - m) / (REACH + 1)) for m, value in enumerate(values) if abs(n - m) <= REACH
        )
        assert around[n] == pytest.approx(expected, abs=1e-5)


def test_the_person_named_speaks_before_others() -> None:
    said = "I bought a kite."
    ledger = ledger_of([("Ada", said), ("Ben", said)] + [("Ada", "Hm."), ("Ben", "Hm.")] * 10)
    assert best(ledger, "What did Ada buy, a kite?") == 0
    assert best(ledger, "What did Ben buy, a kite?") == 1


def test_a_question_that_names_the_wrong_person_still_finds_what_was_said() -> None:
    talk = list(zip(["Ada", "Ben"] * 20, SMALL_TALK * 10, strict=True))
    ledger = ledger_of([*talk, ("Ada", "I sold my red kite in Oslo."), ("Ben", "Oh."), *talk])
    order = np.argsort(score(ledger, "Where did Ben sell the red kite?"))[::-1]
    assert 40 in order[:3]


def test_what_was_said_at_the_time_named_comes_first() -> None:
    day = 86_400.0
    ledger = ledger_of(["We met.", "Yes."] * 4, [n * 40 * day for n in range(8)])
    at = int(np.argmax(score(ledger, "who met on 1970-06-10?")))  # 160 days after the first.
    assert at == 4


def test_the_message_after_a_matching_question_is_a_likely_answer() -> None:
    asked = ["Where is the kite?", "In the attic.", *SMALL_TALK * 6]
    told = ["Here is the kite.", "In the attic.", *SMALL_TALK * 6]
    assert score(ledger_of(asked), "kite")[1] > score(ledger_of(told), "kite")[1]


def test_a_question_for_a_time_prefers_messages_that_tell_one() -> None:
    ledger = ledger_of(["The kite flew.", "The kite flew yesterday.", *SMALL_TALK * 6])
    assert best(ledger, "When was the kite?") == 1


def test_unknown_similarities_count_as_the_mean() -> None:
    ledger = ledger_of(["kite", "tea", "oil", "sun"])
    asked = question_of("kite", ENGLISH)
    found = parts_of(ledger, asked, ledger.figures(asked.terms), np.array([0.4, 0.2, np.nan, np.nan])).cosine
    assert found is not None
    assert found.tolist() == pytest.approx([0.4, 0.2, 0.3, 0.3])


def test_long_answers_are_an_assistants_and_short_ones_a_persons() -> None:
    assert assistance(ledger_of(["A question?", LONG] * 5)).min() > 0.95
    assert assistance(ledger_of(["How are you?", "Fine, thanks."] * 5)).max() < 0.05


def test_a_conversation_may_be_of_both_kinds() -> None:
    share = assistance(ledger_of(["How are you?", "Fine."] * 15 + ["A question?", LONG] * 15))
    assert share[:20].max() < 0.05
    assert share[-20:].min() > 0.95


def test_an_answer_is_found_by_its_question_in_a_chat_with_an_assistant() -> None:
    other = [f"What about thing{n}?" for n in range(8)]
    texts = [text for ask in other for text in (ask, LONG)]
    ledger = ledger_of([*texts, "How do I fly a kite?", LONG])
    found = np.argsort(score(ledger, "kite"))[::-1][:2]
    assert set(found) == {16, 17}


@pytest.mark.parametrize(
    ("query", "first"), [("What did I ask about the kite?", 16), ("What did you say of the kite?", 17)]
)
def test_within_a_turn_the_one_who_is_meant_comes_first(query: str, first: int) -> None:
    other = [text for n in range(8) for text in (f"What about thing{n}?", LONG)]
    ledger = ledger_of([*other, "How do I fly a kite?", f"A kite needs wind. {LONG}"])
    assert best(ledger, query) == first


def test_messages_may_be_added_twice_and_in_any_portions() -> None:
    texts = ["red kite", "tea", "blue kite", "oil"]
    whole = ledger_of(texts)
    again = Postings()
    records = [
        DocumentRow(int(row["key"]), int(row["seq"]), n or None, "human" if row["human"] else "ai", True,
               document_of(HumanMessage(texts[n]), texts[n], 0.0, ENGLISH))
        for n, row in enumerate(whole.rows)
    ]  # fmt: skip
    for part in (records[:1], records[:3], records):
        again.add(part)
    assert score(again, "kite") == score(whole, "kite")


LISTS = st.lists(st.sets(st.integers(REACH, 120), min_size=1).map(sorted), min_size=1, max_size=4)


@given(lists=LISTS, most=st.integers(1, 200))
def test_what_is_promising_by_lists_is_what_holds_terms_or_stands_beside_them(
    lists: list[list[int]], most: int
) -> None:
    segment = 1 << 24
    keys, windows = likely_keys([segment + np.array(one) for one in lists], [1.0] * len(lists), most)
    own, around = PEOPLE["own"][1], PEOPLE["window"][1]
    worth = np.zeros(120 + REACH + 1)
    for one in lists:
        worth[one] += 1 / len(lists)
    slope = [max(0, 1 - abs(n) / (REACH + 1)) for n in range(len(worth))]
    window = [sum(slope[abs(n - m)] * worth[m] for m in range(len(worth))) for n in range(len(worth))]
    promise = own * worth + around * np.array(window)
    found = (keys - segment).tolist()
    assert len(set(found)) == len(found) == min(most, int((promise > 1e-4).sum()))
    assert windows == pytest.approx([window[n] for n in found], abs=1e-4)
    left = np.delete(promise, found)
    assert not len(left) or left.max() <= promise[found].min() + 1e-4


def test_a_neighbour_in_another_segment_is_not_promising() -> None:
    first, _ = likely_keys([np.array([(2 << 24) + 1])], [1.0], 100)
    assert sorted(first & 0xFFFFFF) == list(range(REACH + 2))
    assert set((first >> 24).tolist()) == {2}
