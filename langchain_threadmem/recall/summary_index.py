"""Summaries of a conversation as scored texts.

A summary is scored as a text that stands alone (`scoring.alone`): the summary beside it is no part of its
neighbourhood. Lengths are compared with those of messages, so a summary is one more long text,
and holding a word among many others counts little: the message that says it comes before the summary that
quotes it. A summary comes first where it brings together words of several messages.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from langchain_threadmem.index.documents import Record
from langchain_threadmem.recall.postings import Figures, Floats, Postings
from langchain_threadmem.recall.question import Question
from langchain_threadmem.recall.scoring import Parts, nearness, parts_of
from langchain_threadmem.summaries.queries import Extent


class SummaryIndex:
    """Summaries by the rows of the postings of their texts; the time of a row is the end of what it covers.

    Args:
        records: Their texts; those without an extent are left out.
        extents: The messages that they cover.
        version: Version of the tree that they were read at.

    Attributes:
        postings: Their texts.
        rank: (n,) rank of each.
        thread: (n,) thread of each, or 0.
        started: (n,) the beginning of the time that each covers.
        messages: (n,) how many messages each covers.
        whole: Whether the text of each is there.
    """

    def __init__(self, records: Iterable[Record], extents: Iterable[Extent], version: int = -1) -> None:
        of = {extent.key: extent for extent in extents}
        rows = sorted((record for record in records if record.key in of), key=lambda record: record.key)
        self.postings = Postings()
        self.postings.add(
            # Numbers are given anew, for they may be of several trees; no summary continues another.
            record._replace(seq=n, parent=None, document=record.document._replace(time=of[record.key].ended))
            for n, record in enumerate(rows, 1)
        )
        chosen = [of[record.key] for record in rows]
        self.rank = np.array([extent.rank for extent in chosen], np.int64)
        self.thread = np.array([extent.thread for extent in chosen], np.int64)
        self.started = np.array([extent.started for extent in chosen])
        self.messages = np.array([extent.messages for extent in chosen], np.int64)
        self.whole = len(rows) == len(of)
        self.version = version

    def parts(self, question: Question, figures: Figures, cosine: Floats | None) -> Parts:
        """The parts of the score of each summary.

        Args:
            question: The question.
            figures: Figures over the messages that are searched with them.
            cosine: Similarity of each; NaN where it is not known.
        """
        beside = np.zeros(len(self.postings.rows))
        parts = parts_of(self.postings, question, figures, cosine, beside)
        if cosine is not None and parts.cosine is None:
            parts = parts._replace(cosine=beside)  # The messages beside them are weighed by meaning too.
        return parts._replace(date=nearness(question, self.started, self.postings.rows["time"]))
