"""Documents and questions of recall: terms, traits, people, dates."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from snowballstemmer import stemmer

from langchain_threadmem import Language
from langchain_threadmem.index import language
from langchain_threadmem.index.documents import LEAD, Traits, document_of, lines_of, unpack
from langchain_threadmem.index.language import ENGLISH, MONTHS, PLAIN, split, stop_terms
from langchain_threadmem.messages.times import said_at
from langchain_threadmem.recall.question import DAY, question_of, span_of

NOW = datetime(2024, 3, 20, 15, tzinfo=UTC).timestamp()


def day(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@given(st.text(max_size=60))
def test_every_text_has_terms_that_a_database_can_hold(text: str) -> None:
    for spoken in (ENGLISH, PLAIN):
        terms = spoken.terms(text)
        assert len(terms) == len(split(text))
        assert all(term and not set(term) & set(" '’§\n\x00") for term in terms)


def test_forms_of_a_word_are_one_term() -> None:
    assert len(set(ENGLISH.terms("connect connected connecting connection connections"))) == 1
    assert ENGLISH.terms("Anna's dogs don't") == ["anna", "dog", "don"]


_PIECES = [
    "yesterday",
    "o'may",
    "last week",
    "1999",
    "3",
    "five",
    "I",
    "my5",
    "शादी2",
    "’90s",
    "the",
    "a_b",
    "?",
]
_DATA = "![a](data:image/png;base64,may5+/=)"
_TWO_WORDS = Language("two", time_expression=re.compile(r"\blast week\b"), number_words=frozenset({"five"}))


@pytest.mark.parametrize("language", [ENGLISH, PLAIN, _TWO_WORDS])
@given(
    st.lists(st.sampled_from([*_PIECES, _DATA]) | st.text(max_size=4), max_size=50).map(" ".join)
    | st.lists(st.sampled_from(_PIECES), max_size=50).map("".join),
)
def test_words_of_each_kind_are_counted_as_the_patterns_find_them(language: Language, text: str) -> None:
    text = text.replace("`", "")  # Words of code are counted otherwise.
    traits = unpack(document_of(HumanMessage(text), text, 0.0, language).traits)
    words, times = split(text), language.time_expression
    stop = [term in stop_terms(language) for term in language.terms(text)]
    assert traits == Traits(
        asks="?" in text,
        times=0 if times is None else min(len(times.findall(text.lower())), 3),
        numbers=min(len(re.findall(r"\d+", text)) + sum(word in language.number_words for word in words), 7),
        selfs=min(sum(word in language.self_words for word in words), 7),
        lead=stop[:LEAD].count(False),
        length=stop.count(False),
    )


def test_the_data_of_a_picture_in_a_text_has_no_terms() -> None:
    picture = "data:image/png;base64,iVBORw0KGgo/bread+AAAA=="
    assert ENGLISH.terms(f"Look: ![loaf]({picture}) here") == ["look", "loaf", "here"]
    assert ENGLISH.terms(f'<img src="{picture}" alt="loaf">') == ["img", "src", "alt", "loaf"]
    assert ENGLISH.terms("data: a, b; base64") == ["data", "a", "b", "base64"]


def test_a_word_that_is_longer_than_words_are_is_its_own_term() -> None:
    assert ENGLISH.terms("y" * 100_000 + "ing") == ["y" * 100_000 + "ing"]


def test_stems_do_not_depend_on_what_else_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    beginnings = {*language.STOP_WORDS, *language.ASKING_WORDS, "horse", "grow", "skis", "y", "naïve", "東京"}
    endings = ["", "ing", "edly", "ization", "fulness", "ously", "iveness", "ies", "ied", "s", "logy", "est"]
    words = [beginning + ending for beginning in sorted(beginnings) for ending in endings]

    def stems() -> list[str]:
        language._stemmer.cache_clear()
        assert ENGLISH.stem is not None
        return [ENGLISH.stem(word) for word in words]

    by_installed = stems()
    monkeypatch.setitem(sys.modules, "Stemmer", None)  # as if PyStemmer were not installed
    assert stems() == by_installed
    language._stemmer.cache_clear()


def test_another_language_brings_its_stemmer_and_its_stop_words() -> None:
    german = Language("german", stemmer("german").stemWord, stop_words=frozenset({"das", "ist", "wo"}))
    asked = question_of("Wo ist das Buch?", german)
    assert list(asked.terms) == german.terms("Bücher") == ["buch"]


def test_without_a_language_words_of_any_script_count_as_they_are() -> None:
    assert PLAIN.terms("東京 タワー Größe") == ["東京", "タワー", "größe"]


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("What did you mention about my garden?", ["garden"]),
        ("Can you list the order in which I brought up different tools?", ["tools"]),
        ("What about it?", ["what", "about", "it"]),
        ("My order", ["order"]),
        ("?!", []),
    ],
)
def test_what_only_asks_is_not_looked_for_unless_nothing_else_is_left(query: str, terms: list[str]) -> None:
    assert list(question_of(query, ENGLISH).terms.values()) == terms


def test_people_who_take_part_are_named_and_not_looked_for() -> None:
    asked = question_of("Where did Ada meet Grace?", ENGLISH, {"ada", "grace"})
    assert (sorted(asked.named), list(asked.terms)) == (["ada", "grace"], ["meet"])
    assert list(question_of("Ada?", ENGLISH, {"ada"}).terms) == ["ada"]


def test_a_name_that_is_a_common_word_must_be_written_as_one() -> None:
    assert question_of("When will it rain?", ENGLISH, {"will"}).named == frozenset()
    assert question_of("What does Will want?", ENGLISH, {"will"}).named == {"will"}


@pytest.mark.parametrize(
    ("query", "when", "amount"),
    [
        ("When did it rain?", True, False),
        ("How long did it rain?", True, True),
        ("How many cats are there?", False, True),
        ("Whenever?", False, False),
    ],
)
def test_questions_for_a_time_and_for_a_number(query: str, when: bool, amount: bool) -> None:
    asked = question_of(query, ENGLISH)
    assert (asked.when, asked.amount) == (when, amount)


@pytest.mark.parametrize(
    ("given", "iso"),
    [
        ("1:56 pm on 8 May, 2023", "2023-05-08T13:56"),
        ("12:05 am on 1 January, 2024", "2024-01-01T00:05"),
        ("March-15-2024", "2024-03-15T00:00"),
        ("2024-03-15", "2024-03-15T00:00"),
        ("2023/05/22 (Mon) 18:05", "2023-05-22T18:05"),
        ("2024-03-15T10:30:00+00:00", "2024-03-15T10:30"),
        ("Sept 3rd 2024, 09:15", "2024-09-03T09:15"),
        (datetime(2024, 3, 15), "2024-03-15T00:00"),
        (1710460800, "2024-03-15T00:00"),
    ],
)
def test_a_time_is_read_as_people_and_programs_write_it(given: Any, iso: str) -> None:
    assert said_at(given, MONTHS) == day(iso)


@pytest.mark.parametrize("given", ["yesterday", "31 February, 2024", "3 pm", "", None, True, 1e300, ["2024"]])
def test_a_time_that_cannot_be_read_is_none(given: Any) -> None:
    assert said_at(given, MONTHS) is None


@given(st.text(max_size=40))
def test_no_text_breaks_the_reading_of_times(text: str) -> None:
    said_at(text, MONTHS)
    span_of(text.lower(), MONTHS, NOW, NOW)


@pytest.mark.parametrize(
    ("question", "first", "days"),
    [
        ("what happened on may 3, 2023?", "2023-05-03", 1),
        ("what happened on the 3rd of may 2023", "2023-05-03", 1),
        ("where was he in june 2023?", "2023-06-01", 30),
        ("what did she buy in december?", "2023-12-01", 31),
        ("what did she buy in february?", "2024-02-01", 29),
        ("what was new in 2023?", "2023-01-01", 365),
        ("on 2024-02-29?", "2024-02-29", 1),
        ("what did i say yesterday?", "2024-03-19", 1),
        ("and last week?", "2024-03-11", 7),
        ("and last month?", "2024-02-01", 29),
    ],
)
def test_a_question_names_a_time(question: str, first: str, days: int) -> None:
    span = span_of(question, MONTHS, NOW, NOW)
    assert span is not None
    assert (span.start, (span.end - span.start) / DAY) == (day(first), days)


def test_a_month_without_a_year_names_no_time_if_the_newest_message_is_before_the_year_1() -> None:
    assert span_of("who came in march?", MONTHS, -9e10, NOW) is None


@pytest.mark.parametrize("question", ["may i ask?", "the march to the sea", "how many?", "room 101"])
def test_a_question_that_names_no_time(question: str) -> None:
    assert span_of(question, MONTHS, NOW, NOW) is None


TRAITS = st.builds(
    Traits,
    *(st.integers(0, most) for most in (1, 3, 7, 7, 50, 10**9)),
)


@given(TRAITS)
def test_traits_survive_packing(traits: Traits) -> None:
    assert unpack(traits.pack()) == traits


def test_a_gist_keeps_words_and_code_apart() -> None:
    text = "Last week I ran 3 jobs. Why did it fail?\n```python\nrun(jobs)\n```"
    gist = document_of(HumanMessage(text, name="Ada Byron"), text, 7.0, ENGLISH)
    said, code = lines_of(gist.terms)
    assert "job" in said
    assert code == ["python", "run", "job"]
    assert unpack(gist.traits)._replace(lead=0, length=0) == Traits(1, 2, 1, 1)
    assert (gist.speaker, gist.time) == ("ada byron", 7.0)


@pytest.mark.parametrize("name", ["user", "Assistant", None, " "])
def test_a_role_is_no_name(name: str | None) -> None:
    assert document_of(HumanMessage("hi", name=name), "hi", 0.0, ENGLISH).speaker == ""


def test_the_time_of_a_message_is_the_one_it_brings() -> None:
    said = HumanMessage("hi", additional_kwargs={"time": "8 May, 2023"})
    assert document_of(said, "hi", 7.0, ENGLISH).time == day("2023-05-08")
    assert document_of(HumanMessage("hi", additional_kwargs={"time": "soon"}), "hi", 7.0, ENGLISH).time == 7.0
