"""The words that the pages use for people, each with the sentence that they show on hover."""

from __future__ import annotations

from collections.abc import Mapping

from langchain_threadmem.messages.text import escape
from langchain_threadmem.storage.schema import State

WORDS: Mapping[str, str] = {
    "thread": "Messages about one subject, each an answer to the one above it.",
    "branch": "A thread that leaves another thread at an earlier message.",
    "active": "The next message continues here.",
    "doubtful": "It is not certain that the message belongs here.",
    "replaced": "An older version of a message, or the place that it was moved from. Models do not see it.",
    "erased": "Only the number of the message remains.",
    "aside": "A note of a program, such as a summary. It is no part of the conversation.",
    "edited": "The message has older versions.",
    "answered again": "The answer has older versions.",
    "archived": "Put away: the conversation is not listed, but nothing is deleted.",
    "summary": "What a program wrote about several messages.",
}
"""The words with their sentences."""

STATES: Mapping[State, str] = {
    State.LIVE: "",
    State.SUPERSEDED: "replaced",
    State.ASIDE: "aside",
    State.PURGED: "erased",
    State.REMOVED: "erased",
}
"""The word for the state of a message; none for a message of a thread."""


def hover(word: str) -> str:
    """The attribute `title` of an element that shows a word.

    Example:
        >>> hover("active")
        ' title="The next message continues here."'
    """
    return f' title="{escape(WORDS[word])}"'
