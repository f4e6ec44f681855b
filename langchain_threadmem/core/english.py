"""English, as recall knows it: stems, words that say nothing, words that only ask, times.

Stems are Porter's second algorithm for English as Snowball keeps it. The lists hold ordinary English only: no
name, no topic.
"""

# ruff: noqa: SIM905 - a list of words is read best as text

from __future__ import annotations

import re
from functools import cache
from typing import Any

from langchain_threadmem.core.language import Language

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
"""Words that say little about what a message is about."""

ASKING_WORDS = frozenset(
    """
    across ask asked asking aspect aspects based bring bringing brought chat chats conversation
    conversations consider considering currently decided describe different discuss discussed discussion
    earlier explain follow following guide help item items list mention mentioned name number order
    ordered previously provide recommend regarding said sequence session sessions message messages
    specific suggest talk tell throughout together told total various walk
    """.split()
)
"""Words that belong to the asking rather than to what is asked about."""

SELF_WORDS = frozenset("i my me mine myself we our us".split())

OTHER_WORDS = frozenset("you your yours yourself".split())

NUMBER_WORDS = frozenset(
    """
    two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand
    million dozen couple few several half
    """.split()
)

_LONG = "january february march april may june july august september october november december".split()
MONTHS = {name: n for n, month in enumerate(_LONG, 1) for name in {month, month[:3]}} | {"sept": 9}

_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_TIMES = (
    r"yesterday|today|tonight|tomorrow|ago|last|next|this|past|previous|upcoming|recently|weekends?|weeks?|"
    rf"months?|years?|{_DAYS}|{'|'.join(_LONG)}|mornings?|evenings?|afternoons?|nights?|spring|summer|autumn|"
    r"fall|winter|"
    r"christmas|easter|birthdays?|since|just|(?:19|20)\d\d"
)
_WHEN = r"when|since when|what (?:date|day|month|year|time)|how long|which (?:month|year|day)|how long ago"


def _stem(word: str) -> str:
    return str(_stemmer().stemWord(word))


@cache
def _stemmer() -> Any:
    # The Python one, always: `snowballstemmer.stemmer` prefers PyStemmer where that is installed, and stems
    # are kept in the database, where those of two versions would not find each other.
    from snowballstemmer.english_stemmer import EnglishStemmer

    return EnglishStemmer()


ENGLISH = Language(
    "english",
    _stem,
    STOP_WORDS,
    ASKING_WORDS,
    SELF_WORDS,
    OTHER_WORDS,
    NUMBER_WORDS,
    MONTHS,
    time_expression=re.compile(rf"\b(?:{_TIMES})\b"),
    asks_when=re.compile(rf"\b(?:{_WHEN})\b"),
    asks_amount=re.compile(r"\bhow (?:many|much|often|old|long|far)\b"),
)
"""The default."""
