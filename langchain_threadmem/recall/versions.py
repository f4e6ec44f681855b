"""Equal texts, and newer statements of one thing among hits.

A text that was said ten times is one hit, and a corrected fact is worth less than its correction. Neither
shows in a score: the shorter, older statement usually scores higher. So of equal texts of one speaker the
newest is the hit, at the place of the best; and a newer statement of the same thing comes directly before the
older one.

Two short statements of one speaker are about the same thing if the newer contains the words of the query that
the older contains, and they share most of their words; a statement that announces a change ("moved", "no
longer") may share fewer. Of 65 corrections 63 come first, with either local model and by words (before, 9 to
19), 29 of 30 similar statements about other things ("my wife's office") do not move, and R@5, R@10 and
NDCG@10 of LoCoMo and BEAM stay the same (`benchmarks/versions.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from langchain_threadmem.common.type_variables import T
from langchain_threadmem.index.language import Language, determiner_terms, stop_terms
from langchain_threadmem.recall.question import question_of

LOOKED_AHEAD = 6
"""The number of hits below a statement among which newer statements of the same thing are found."""
LONGEST = 400
MOST_TERMS = 12
"""The maximum length of a statement in characters, and in terms without stop words; a longer text says more
than one thing. With 25 terms NDCG@10 of LoCoMo falls by 0.3, without a limit that of BEAM by 1.5."""
SHARED = 0.5
"""The part of the query's terms that the older statement contains, and the part of the shorter statement's
terms without stop words that both contain."""
SHARED_WORDS = 0.6
"""The part of the shorter statement's terms, with stop words, that both contain."""
SHARED_BY_CHANGE = 0.33
"""The part in place of both if the newer statement announces a change."""
_QUESTION = ("?", "？", "؟")
_ENDS = " \t\n.!…。！"


def alike(text: str) -> str:
    """A value that equal texts have in common.

    Case, spacing and a final full stop of a text of up to `LONGEST` characters do not count.

    Example:
        >>> alike("I will.") == alike("i  will"), alike("I will.") == alike("I will?")
        (True, False)
    """
    text = text.strip()
    return text if len(text) > LONGEST else " ".join(text.lower().split()).rstrip(_ENDS)


def is_question(text: str) -> bool:
    """Whether a text ends like a question."""
    return text.rstrip().endswith(_QUESTION)


class Utterance(NamedTuple):
    """What a hit says, and who said it when.

    Attributes:
        text: The text.
        role: The role of the message, or the source of the unit.
        speaker: The name of the speaker in lower case; empty if there is none.
        time: The time of the message, in seconds since 1970.
        order: A number that orders texts of the same time.
        shared: The words that it shares with the query, without the names of people.
        summary: What identifies a summary, whose text may equal that of a summary of other messages; `None`
            for any other text.
        turn: What identifies the turn of a message; `None` for another text.
    """

    text: str
    role: str
    speaker: str
    time: float
    order: int = 0
    shared: Collection[str] = ()
    summary: Hashable = None
    turn: Hashable = None

    @property
    def wording(self) -> Hashable:
        """A value that equal texts of one speaker have in common, as by `alike`."""
        return self.role, self.speaker, alike(self.text), self.summary

    def is_newer(self, other: Utterance) -> bool:
        """Whether the text was said after another."""
        return (self.time, self.order) > (other.time, other.order)


class Assertion(NamedTuple):
    """A short text that states something, for the comparison with other statements.

    Attributes:
        words: Its terms, in order.
        terms: Its terms without stop words.
        changes: Whether it announces a change.
    """

    words: Sequence[str]
    terms: frozenset[str]
    changes: bool


class Sought(NamedTuple):
    """The terms to search for in a query, all of its terms, and their language.

    Attributes:
        terms: The terms to search for.
        words: All terms of the query.
        language: The language.
        asks_back: Whether the query asks what was said or done before.

    Example:
        >>> from langchain_threadmem.index.language import ENGLISH
        >>> sought = sought_in("Where is my office?", ENGLISH)
        >>> texts = "My office is in Rome.", "I moved: my office is in Oslo.", "My wife's office is in Bari."
        >>> said = (Utterance(text, "human", "", time) for time, text in enumerate(texts))
        >>> rome, oslo, bari = map(sought.statement, said)
        >>> sought.updates(oslo, rome), sought.updates(bari, rome)
        (True, False)
    """

    terms: frozenset[str]
    words: frozenset[str]
    language: Language
    asks_back: bool = False

    def statement(self, said: Utterance) -> Assertion | None:
        """A text as a statement about the query; `None` for a question, a long text, or another subject."""
        text, language = said.text, self.language
        if said.summary is not None or len(text) > LONGEST or is_question(text):
            return None
        words = language.terms(text)
        terms = frozenset(words) - stop_terms(language)
        if len(terms) > MOST_TERMS or not terms & self.terms:
            return None
        return Assertion(words, terms, self._changes(text.lower()))

    def _changes(self, text: str) -> bool:
        """Whether a text in lower case announces a change."""
        change = self.language.change_expression
        return change is not None and bool(change.search(text))

    def may_state(self, said: Utterance) -> bool:
        """Whether a text may be a statement about the query."""
        return bool(said.shared) and len(said.text) <= LONGEST and not is_question(said.text)

    def covers(self, said: Utterance) -> bool:
        """Whether a text contains about half of the terms, or more."""
        # The names of people are no words that are shared.
        return 2 * len(said.shared) >= len(self.terms) - 1

    def compares(self, newer: Utterance, older: Utterance) -> bool:
        """Whether a text may be a newer statement than another; the others are not split into terms."""
        return (
            self.covers(older)
            and newer.speaker == older.speaker
            and newer.is_newer(older)
            and (set(older.shared) <= set(newer.shared) or self._changes(newer.text.lower()))
        )

    def updates(self, newer: Assertion, older: Assertion) -> bool:
        """Whether a newer statement is about the same thing as an older one."""
        sought = older.terms & self.terms
        if len(sought) < SHARED * len(self.terms):
            return False
        named = len(sought & newer.terms) / len(sought)
        shared = _shared(newer.terms, older.terms)
        if newer.changes:
            same = named >= SHARED and shared >= SHARED_BY_CHANGE
        else:
            same = (
                named == 1
                and shared >= SHARED
                and _shared(frozenset(newer.words), frozenset(older.words)) >= SHARED_WORDS
            )
        return same and not self._of_another(newer, older, sought)

    def _of_another(self, newer: Assertion, older: Assertion, sought: frozenset[str]) -> bool:
        """Whether a statement names another thing: "my wife's office" after "my office", not "my new office".

        A word of the query that names the older thing ("my first car") names the newer one too.
        """
        language = self.language
        named = {term for owner, term in pairwise(older.words) if owner in determiner_terms(language)}
        kinds = {kind for kind, term in _kinds(older.words, language) if term in sought}
        return not (kinds & self.words <= set(newer.words)) or any(
            term in sought & named and kind not in stop_terms(language) and not self._changes(kind)
            for kind, term in _kinds(newer.words, language)
        )


def _kinds(words: Sequence[str], language: Language) -> Iterator[tuple[str, str]]:
    """The pairs of words after a determiner: "office" is the term in "my wife's office", "wife" its kind."""
    for owner, kind, term in zip(words, words[1:], words[2:], strict=False):
        if owner in determiner_terms(language):
            yield kind, term


def _shared(some: frozenset[str], others: frozenset[str]) -> float:
    """The part of the smaller set that is in both."""
    return len(some & others) / min(len(some), len(others))


def sought_in(query: str, language: Language) -> Sought:
    """The terms of a query."""
    terms, words = frozenset(question_of(query, language).terms), frozenset(language.terms(query))
    asks_back = language.asks_back is not None and bool(language.asks_back.search(query.lower()))
    return Sought(terms, words, language, asks_back)


def newest_first(results: Sequence[T], said: Sequence[Utterance], sought: Sought) -> list[tuple[T, T]]:
    """Results, the best first, with each newer statement of a thing directly before the older statement.

    Returns:
        Each result with the result whose place it takes, which is the result itself if it is not moved.
    """
    stating = [n for n, one in enumerate(said) if sought.may_state(one)]
    if len(stating) < 2:
        return [(result, result) for result in results]
    statements: dict[int, Assertion | None] = {}

    def statement(n: int) -> Assertion | None:
        if n not in statements:
            statements[n] = sought.statement(said[n])
        return statements[n]

    def updates(newer: int, older: int) -> bool:
        if not sought.compares(said[newer], said[older]):
            return False
        before, after = statement(older), statement(newer)
        return before is not None and after is not None and sought.updates(after, before)

    ordered: list[tuple[T, T]] = []
    rest, possible = list(range(len(results))), frozenset(stating)
    while rest:
        best = rest.pop(0)
        newer = (
            [n for n in rest[:LOOKED_AHEAD] if n in possible and updates(n, best)] if best in possible else []
        )
        newer.sort(key=lambda n: (said[n].time, said[n].order), reverse=True)
        ordered += [(results[n], results[best]) for n in (*newer, best)]
        if newer:
            rest = [n for n in rest if n not in newer]
    return ordered
