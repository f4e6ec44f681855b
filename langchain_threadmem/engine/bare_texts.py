"""The texts by which human messages are compared and embedded: without the constant text of a conversation.

A selector learns the constant text of a conversation (`messages.constant_text`) before the new messages are
embedded, so their vectors are those of the bare texts. Messages that are embedded before, by a recall or in
an import, are bare as far as the constant text is known or is seen among them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from langchain_threadmem.engine.runtime import TreeCache
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.constant_text import LATEST, ConstantText, constant_text

_CACHED = 1024
"""The number of bare texts that are cached for a conversation."""
_SETTLED = 8
"""The number of messages after which the constant text stays while new messages have all of it."""


class BareTexts:
    """The bare texts of the human messages of a conversation.

    Args:
        text_of: The text of a human message, if the caller knows the template of the messages.

    Example:
        >>> texts = BareTexts()
        >>> texts.learn(["Hi, is rye sour?", "Hi, why do cats purr?"])
        >>> texts.of("Hi, and dogs?")
        'and dogs?'
    """

    def __init__(self, text_of: Callable[[BaseMessage], str] = text_of) -> None:
        self.text_of = text_of
        self.by_node: dict[int, str] = {}
        """The texts of human messages by `text_of`, by number of the node."""
        self.derived: dict[int, tuple[Any, Any]] = {}
        """Values with constant text and their copies with the bare text, by number of the node."""
        self.is_known = False
        """Whether the constant text was determined."""
        self.constant: ConstantText | None = None
        """The constant text, if there is any."""
        self._bare: tuple[ConstantText, dict[str, str]] | None = None

    def learn(self, texts: Sequence[str]) -> None:
        """Determine the constant text by human messages of the conversation, the latest last."""
        self.is_known = True
        if len(texts) >= _SETTLED and self.constant is not None and self.constant.is_in(texts[-1]):
            return
        constant = constant_text(texts[-LATEST:]) or None
        if constant != self.constant:
            self.constant, self.derived = constant, {}
            self._bare = None if constant is None else (constant, {})

    def of_message(self, message: BaseMessage) -> str:
        """The text of a human message without constant text."""
        return self.of(self.text_of(message))

    def of(self, text: str) -> str:
        """The text of a human message without constant text."""
        return self.of_all([text])[0]

    def of_all(self, texts: Sequence[str]) -> Sequence[str]:
        """The texts of human messages without constant text."""
        if (bare := self._bare) is None:
            return texts
        constant, known = bare
        if len(known) > _CACHED:
            known.clear()
            self.derived = {}
        for text in texts:
            if text not in known:
                known[text] = constant.without(text)
        return list(map(known.__getitem__, texts))


class BareTextsOfTrees(TreeCache[BareTexts]):
    """The bare texts of conversations, by tree."""
