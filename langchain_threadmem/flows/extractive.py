"""`ExtractiveSummarizer`: summaries without a model, made of the sentences that say most."""

from __future__ import annotations

from langchain_core.messages import BaseMessage

from langchain_threadmem.core.bodies import text_of
from langchain_threadmem.core.names import kept_text
from langchain_threadmem.core.nodes import MessageSummary
from langchain_threadmem.errors import InputError
from langchain_threadmem.flows.summarize import CONTEXT

OF_A_MESSAGE = 2


class ExtractiveSummarizer:
    """Summarises by quoting: no language model, no key, the same result every time.

    The sentences are those that share most with the others (`core.extracting`). Some milliseconds for a
    group of messages.

    Args:
        sentences: How many sentences of a group are kept; of a single message two at most.

    Raises:
        InputError: `sentences` is not positive.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> text = "Good bread needs time. Hello there! Flat bread had too little time. Bye."
        >>> ExtractiveSummarizer().summarize(HumanMessage(text)).summary
        'Good bread needs time. Flat bread had too little time.'
    """

    def __init__(self, sentences: int = 5) -> None:
        if sentences < 1:
            raise InputError(f"sentences={sentences!r} is not positive; pass how many to keep")
        self.sentences = sentences

    def summarize(self, message: BaseMessage) -> MessageSummary | None:
        """The summary; `None` of a message without text."""
        from langchain_threadmem.core.extracting import extract

        group = CONTEXT in message.additional_kwargs
        most = self.sentences if group else min(self.sentences, OF_A_MESSAGE)
        title, kept = extract(kept_text(text_of(message)), most)
        return MessageSummary(title=title, summary=("\n" if group else " ").join(kept)) if kept else None
