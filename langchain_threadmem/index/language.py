"""Languages: tokens, stems, stop words, words of questions and times."""
# ruff: noqa: SIM905 - a list of words is read best as text

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, NamedTuple

from langchain_threadmem.common import forking
from langchain_threadmem.messages.times import LONG_MONTHS
from langchain_threadmem.messages.times import MONTHS as MONTHS

_INDIC = "\u0900-\u0963\u0966-\u0dff"
"""The scripts of India, whose vowel signs are no letters but parts of words."""
_WORD = re.compile(rf"\w+(?:[{_INDIC}]+\w*)*")
_CUT_OFF = re.compile(r"['’](?<=\w['’])[^\W_]+")
"""The end of a word from an apostrophe on; a pattern that begins with the apostrophe is fast."""
_DATA = re.compile(r"data:[^\s,]{0,100};base64,[\w+/=-]*", re.ASCII)
"""A URL with its data, such as a picture in a Markdown text; the words of a megabyte take seconds to stem."""
DATA = ";base64,"
"""A part of each URL with its data."""
NUMBER = re.compile(r"\d+")
_TO_SPACES = str.maketrans({chr(n): " " for n in range(128) if not (chr(n).isalnum() or chr(n) == "_")})
REMEMBERED = 200_000
LONGEST_STEMMED = 100
"""The number of letters of the longest word that is stemmed; the time for a stem grows with its square."""


class WordKinds(NamedTuple):
    """Numbers of words in a text.

    Attributes:
        stop: Words whose stem is that of a stop word.
        digits: Numbers in digits.
        selfs: Words with which speakers refer to themselves.
        numerals: Words for numbers.
        times: Expressions of time; 0 if the language has expressions of several words.
    """

    stop: int = 0
    digits: int = 0
    selfs: int = 0
    numerals: int = 0
    times: int = 0


_BITS = 31
"""The bits of a count. A text has fewer words, and the sum of two counts is a small number for Python."""
_MOST = (1 << _BITS) - 1
_SHIFTS = _, _DIGITS, _SELFS, _NUMERALS, _TIMES_SHIFT = [n * _BITS for n in range(len(WordKinds._fields))]


class _KindsOfWords(dict[str, int]):
    """The kinds of words, packed into one number for each word; the sum of the numbers counts all kinds.

    A message of 20 words takes 2 µs, where a pass for each kind took 9.
    """

    def __init__(self, language: Language) -> None:
        super().__init__()
        self._language = language

    def __missing__(self, word: str) -> int:
        language, times = self._language, self._language.time_expression
        packed = int(language.term(word) in stop_terms(language))
        if not word.isalpha():
            packed |= len(NUMBER.findall(word)) << _DIGITS
        if word in language.self_words:
            packed |= 1 << _SELFS
        if word in language.number_words:
            packed |= 1 << _NUMERALS
        if times is not None and times in ONE_WORD and times.search(word):
            packed |= len(times.findall(word)) << _TIMES_SHIFT
        if len(self) < REMEMBERED:
            self[word] = packed
        return packed


@dataclass(frozen=True, eq=False)
class Language:
    """The stemmer and the word lists of a language; all fields but the name are optional.

    Attributes:
        name: The name of the lexicon. Languages of different names have different indexes.
        stem: A function that returns the stem of a word in lower case.
        stop_words: Common words that are ignored in messages and questions.
        asking_words: Words that are ignored in questions ("mention", "order", "different").
        self_words: Words with which speakers refer to themselves.
        other_words: Words with which speakers address each other.
        number_words: Words for numbers.
        months: The number of each month, by name and abbreviation.
        time_expression: A pattern of expressions of time ("last week"), in lower case.
        asks_when: A pattern of phrases that ask for a time.
        asks_amount: A pattern of phrases that ask for a number.
        asks_back: A pattern of phrases that ask what was said or done before ("did I", "you mentioned").
        change_expression: A pattern of phrases that announce a change ("moved", "no longer"), in lower case.
        determiners: Words that begin the name of a thing ("my", "the").
    """

    name: str
    stem: Callable[[str], str] | None = None
    stop_words: frozenset[str] = frozenset()
    asking_words: frozenset[str] = frozenset()
    self_words: frozenset[str] = frozenset()
    other_words: frozenset[str] = frozenset()
    number_words: frozenset[str] = frozenset()
    months: Mapping[str, int] = field(default_factory=dict)
    time_expression: re.Pattern[str] | None = None
    asks_when: re.Pattern[str] | None = None
    asks_amount: re.Pattern[str] | None = None
    asks_back: re.Pattern[str] | None = None
    change_expression: re.Pattern[str] | None = None
    determiners: frozenset[str] = frozenset()

    _stems: dict[str, str] = field(init=False, repr=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, repr=False, default_factory=forking.lock)
    _kinds: _KindsOfWords = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_kinds", _KindsOfWords(self))

    def term(self, word: str) -> str:
        """The stem of a word in lower case, cached; a numeral or a word of more than 100 letters itself."""
        if len(word) > LONGEST_STEMMED or word.isdecimal():
            return word
        stem = self._stems.get(word)
        if stem is None:
            stem = word
            if self.stem is not None:
                with self._lock:  # A stemmer in pure Python is not thread-safe.
                    stem = self.stem(word) or word
            if len(self._stems) < REMEMBERED:
                self._stems[word] = stem
        return stem

    def forget(self) -> None:
        """Clear the caches of words, which contain words of messages."""
        self._stems.clear()
        self._kinds.clear()

    def terms(self, text: str) -> list[str]:
        """The terms of a text, in order, including stop words."""
        return stemmed(split(text), self)


def stemmed(words: Iterable[str], language: Language) -> list[str]:
    """The terms of words in lower case."""
    stems, term = language._stems, language.term
    return [stems.get(word) or term(word) for word in words]


def kinds_of(words: Iterable[str], language: Language) -> WordKinds:
    """The numbers of words of each kind among words in lower case."""
    packed = sum(map(language._kinds.__getitem__, words))
    if packed <= _MOST:  # Most texts have no words of another kind.
        return WordKinds(packed)
    return WordKinds(*(packed >> shift & _MOST for shift in _SHIFTS))


@lru_cache(16)
def stop_terms(language: Language) -> frozenset[str]:
    """The stems of the stop words of a language."""
    return frozenset(map(language.term, language.stop_words))


@lru_cache(16)
def determiner_terms(language: Language) -> frozenset[str]:
    """The stems of the determiners of a language."""
    return frozenset(map(language.term, language.determiners))


def words(text: str) -> list[str]:
    """The words of a text in lower case, in order; an apostrophe separates words.

    Example:
        >>> words("Read CSV-files, größer!"), words("didn't"), words("शादी कब है?")
        (['read', 'csv', 'files', 'größer'], ['didn', 't'], ['शादी', 'कब', 'है'])
    """
    return _words(text.lower())


def _words(lowered: str) -> list[str]:
    # For ASCII text this is six times as fast as the pattern.
    return lowered.translate(_TO_SPACES).split() if lowered.isascii() else _WORD.findall(lowered)


def split(text: str) -> list[str]:
    """The words of a text in lower case, in order, without the part after an apostrophe and without data.

    Example:
        >>> split("Ada's read_csv didn't fail")
        ['ada', 'read_csv', 'didn', 'fail']
        >>> split("A ![loaf](data:image/png;base64,iVBORw0KGgo=)")
        ['a', 'loaf']
    """
    if DATA in text:
        text = _DATA.sub(" ", text)
    lowered = text.lower()
    if "'" in lowered or "’" in lowered:
        lowered = _CUT_OFF.sub(" ", lowered)
    return _words(lowered)


PLAIN = Language("plain")
"""Words of any script, without stems and word lists."""

STOP_WORDS = frozenset(
    """
    a about above after again against all almost also always am an and another any anybody anyone
    anything are aren around as at away back be became because become been before being below between
    both but by can cannot come could couldn d did didn do does doesn doing don done down during each
    either else etc ever every few first for from further gave get gets getting give given go goes going
    gone got had hadn has hasn have haven having he her here hers herself hi him himself his how i if in
    instead into is isn it its itself just kind know last let like likely ll lot m made make makes many
    may me might mine more most much must my myself need never no nor not now of off often oh ok okay on
    once one only onto or other our ours ourselves out over own per perhaps please quite rather re
    really s same say says see seem she should shouldn since so some somebody someone something sort
    still such t take than that the their theirs them themselves then there these they thing things
    think this those though through till to too toward towards under until up upon us use used using ve
    very want wanted was wasn way we well went were weren what whatever when where whether which while
    who whom whose why will with within without won would wouldn yes yet you your yours yourself
    yourselves
    """.split()
)
"""Words that are independent of the subject of a message."""

ASKING_WORDS = frozenset(
    """
    across ask asked asking aspect aspects based bring bringing brought chat chats conversation
    conversations consider considering currently decided describe different discuss discussed discussion
    earlier explain follow following guide help item items list mention mentioned name number order
    ordered previously provide recommend regarding said sequence session sessions message messages
    specific suggest talk tell throughout together told total various walk
    """.split()
)
"""Words that belong to the form of a question, not to its subject."""

SELF_WORDS = frozenset("i my me mine myself we our us".split())

OTHER_WORDS = frozenset("you your yours yourself".split())

NUMBER_WORDS = frozenset(
    """
    two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand
    million dozen couple few several half
    """.split()
)

_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_TIMES = (
    r"yesterday|today|tonight|tomorrow|ago|last|next|this|past|previous|upcoming|recently|weekends?|weeks?|"
    rf"months?|years?|{_DAYS}|{'|'.join(LONG_MONTHS)}|mornings?|evenings?|afternoons?|nights?|spring|summer|autumn|"
    r"fall|winter|"
    r"christmas|easter|birthdays?|since|just|19\d\d|20\d\d"
)
_CHANGES = (
    r"now|no longer|any ?more|instead|correction|corrected|actually|moved|chang(?:ed|es)|switched|renamed|"
    r"replaced|updated|upgraded|rewr(?:ote|itten)|postponed|delayed|extended|raised|cut to|went (?:up|down)|"
    r"new|current|latest|left|quit|sold|retired|stopped|gave up|from now on|these days|lately"
)


def _by_first_letter(alternatives: str) -> str:
    """The same alternatives grouped by their first letters, so that few are tried at each word."""
    groups: dict[str, list[str]] = {}
    for one in alternatives.split("|"):
        groups.setdefault(one[0], []).append(one[1:])
    return "|".join(f"{first}(?:{'|'.join(rests)})" for first, rests in groups.items())


_WHEN = r"when|since when|what (?:date|day|month|year|time)|how long|which (?:month|year|day)|how long ago"


def _stem(word: str) -> str:
    return str(_stemmer().stemWord(word))


@cache
def _stemmer() -> Any:
    # Stems are stored in the database, so both packages have the algorithm of Snowball 3.1. PyStemmer, in C,
    # takes a fifteenth of the time, and has wheels for CPython only.
    try:
        from Stemmer import Stemmer
    except ImportError:
        from snowballstemmer.english_stemmer import EnglishStemmer

        return EnglishStemmer()
    return Stemmer("english", 0)  # `Language` has a cache.


ENGLISH = Language(
    "english",
    _stem,
    STOP_WORDS,
    ASKING_WORDS,
    SELF_WORDS,
    OTHER_WORDS,
    NUMBER_WORDS,
    MONTHS,
    time_expression=re.compile(rf"\b(?:{_by_first_letter(_TIMES)})\b"),
    asks_when=re.compile(rf"\b(?:{_WHEN})\b"),
    asks_amount=re.compile(r"\bhow (?:many|much|often|old|long|far)\b"),
    asks_back=re.compile(
        r"\b(?:did|have|had|was|were) (?:i|we)\b|\bdid (?:you|it take)\b|\bsummar(?:y|i[sz]e)\b|\brecap\b"
        r"|\b(?:i|we|you) (?:said|told|mentioned|brought up|asked|discussed|talked|recommended|suggested)\b"
        r"|\b(?:when|after|before|since) (?:i|we) (?:\w+ed|said|told|began|bought|made|took|went)\b"
        r"|\bhow (?:many|much|often|long)\b.*\b(?:i have|we have|my|our)\b"
    ),
    change_expression=re.compile(rf"\b(?:{_CHANGES})\b"),
    determiners=frozenset("my our your his her their the".split()),
)
"""The default language."""
ONE_WORD = frozenset({ENGLISH.time_expression})
"""Patterns of single words: a text has as many matches as its words."""
