"""Names and ids: checks of callers' names, and ids of new messages."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from enum import Enum
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from langchain_core.messages import BaseMessage

from langchain_threadmem.common.inputs import is_number, is_whole
from langchain_threadmem.errors import InputError

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


LONGEST_NAME = 512
"""The maximum number of UTF-8 bytes of a name: of an owner, a conversation, a session."""
LONGEST_ID = 2000
"""The maximum number of UTF-8 bytes of a message id, of a namespace and of a key of a store.

A row of an index of PostgreSQL has at most 2,704 bytes; the longest is an owner with a namespace.
"""


def name_of(subject: str, value: object, *, most: int = LONGEST_NAME, numbers: bool = False) -> str:
    """The name that a value is, as a plain `str`.

    A member of an enumeration is its value, an instance of a subclass of `str` its text, and a UUID its usual
    form, so that each of them and the text name the same owner or conversation; `str` of a member of a `str`
    enumeration is "Class.MEMBER".

    Args:
        subject: The subject of the error message, such as "an owner".
        most: The maximum number of UTF-8 bytes.
        numbers: Whether an integer is a name, as the number of a user is.

    Raises:
        InputError: The value is no text, is empty or too long, or contains NUL or a lone surrogate.

    Example:
        >>> from enum import Enum
        >>> Person = Enum("Person", {"ADA": "ada"}, type=str)
        >>> name_of("an owner", Person.ADA), name_of("an owner", 7, numbers=True)
        ('ada', '7')
    """
    if type(value) is str and value and not _UNSTORABLE.search(value):
        name = value
    else:
        value = value.value if isinstance(value, Enum) else value
        if isinstance(value, UUID) or (numbers and is_number(value) and isinstance(value, int)):
            value = str(value)
        name = plain_text(subject, value)
    size = len(name.encode())
    if size > most:
        raise InputError(
            f"{subject} has at most {most} bytes in UTF-8, and {name[:40]!r}... has {size}; shorten it"
        )
    return name


def plain_text(subject: str, value: object) -> str:
    """A text that can be stored exactly, as a plain `str`.

    Args:
        subject: The subject of the error message, such as "a title".

    Raises:
        InputError: The value is not a string, is empty, or contains NUL or a lone surrogate.

    Example:
        >>> plain_text("a title", "Ada Löwe")
        'Ada Löwe'
    """
    if not isinstance(value, str) or not value:
        raise InputError(f"{subject} must be a non-empty text, not {value!r}")
    if _UNSTORABLE.search(value):
        raise InputError(
            f"{subject} contains NUL or half of a surrogate pair, which no database can store: {value!r:.200}"
        )
    return str.__str__(value)


def is_key(number: object) -> bool:
    """Whether a value can be the number of a stored row: an integer of at least 1 that a database can store.

    Example:
        >>> is_key(1), is_key(0), is_key(2**63), is_key("1"), is_key(True)
        (True, False, False, False, False)
    """
    return is_whole(number, 1) and number < 1 << 63


def storable(text: str) -> str:
    r"""Replace NUL and lone surrogates, which no database can store, by U+FFFD.

    Example:
        >>> storable("Ada\0") == "Ada\ufffd"
        True
    """
    return _UNSTORABLE.sub("\ufffd", text)


def own_id(message_id: str, question_id: str) -> str:
    """The id of an answer whose message id is that of the same answer to another question.

    Models whose answers are cached (`set_llm_cache`) return the same message, with its id, for equal prompts.
    The id depends on both ids alone, so the same answer to the same question is stored once.

    Example:
        >>> own_id("run-1", "h1") == own_id("run-1", "h1") != own_id("run-1", "h2")
        True
    """
    return str(uuid5(NAMESPACE_OID, f"{len(message_id)} {message_id} {question_id}"))


def chained_id(beginning: str, before: str | None, record: Any) -> str:
    """An id for a record without an id: a hash of the record and of the id of the previous one.

    Example:
        >>> chained_id("import-", None, {"role": "user", "content": "Hello"})
        'import-a41b46a957bc4c4f813e946e40443874'
    """
    text = json.dumps([before, record], sort_keys=True, separators=(",", ":"), default=str)
    return beginning + hashlib.sha256(text.encode()).hexdigest()[:32]


def identify(messages: Sequence[BaseMessage]) -> None:
    """Give messages without an id an id, which is the same in each later copy of the list.

    The reducer of a `DeltaChannel` may assign no ids, and its list is made again from the stored writes at
    each run. As in LangGraph's reducers, the messages themselves are changed.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> first, again = [[HumanMessage("Hello"), AIMessage("Hi!", id="a1")] for _ in range(2)]
        >>> identify(first), identify(again), first[0].id == again[0].id, first[1].id
        (None, None, True, 'a1')
    """
    before = None
    for message in messages:
        if not message.id:
            message.id = chained_id("message-", before, message.model_dump(exclude={"id"}))
        before = message.id
