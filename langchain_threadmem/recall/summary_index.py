"""Summaries of a conversation as scored texts.

A summary is scored without neighbours (`scoring.alone`). Its length is compared with the length of messages,
so a shared word counts less in a long summary than in the message that it quotes. A summary ranks above
messages if it contains words of several messages.
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
    """The texts and extents of summaries; the time of a row is the time of the last covered message.

    Args:
        records: The texts of the summaries; texts without an extent are omitted.
        extents: The messages that each summary covers.
        version: Version of the tree at which the texts and extents were read.

    Attributes:
        postings: The texts.
        rank: (n,) the rank of each summary.
        started: (n,) the time of the first message that each summary covers.
        messages: (n,) the number of messages that each summary covers.
        whole: Whether `records` contains the text of each extent.
    """

    def __init__(self, records: Iterable[Record], extents: Iterable[Extent], version: int = -1) -> None:
        of = {extent.key: extent for extent in extents}
        rows = sorted((record for record in records if record.key in of), key=lambda record: record.key)
        self.postings = Postings()
        self.postings.add(
            # Summaries of several trees may have equal numbers, so they get new numbers, without parents.
            record._replace(seq=n, parent=None, document=record.document._replace(time=of[record.key].ended))
            for n, record in enumerate(rows, 1)
        )
        chosen = [of[record.key] for record in rows]
        self.rank = np.array([extent.rank for extent in chosen], np.int64)
        self.started = np.array([extent.started for extent in chosen])
        self.messages = np.array([extent.messages for extent in chosen], np.int64)
        self.whole = len(rows) == len(of)
        self.version = version

    def parts(self, question: Question, figures: Figures, cosine: Floats | None) -> Parts:
        """The parts of the score of each summary.

        Args:
            question: The question.
            figures: Statistics of the messages that are searched as well.
            cosine: Cosine of each summary; NaN for summaries without a vector.
        """
        beside = np.zeros(len(self.postings.rows))
        parts = parts_of(self.postings, question, figures, cosine, beside)
        if cosine is not None and parts.cosine is None:
            parts = parts._replace(cosine=beside)  # The messages are scored with the weights for embeddings.
        return parts._replace(date=nearness(question, self.started, self.postings.rows["time"]))
