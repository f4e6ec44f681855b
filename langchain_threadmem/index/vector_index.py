"""Vector indexes: the protocol, and exact search in memory.

SQL stores every vector, so an index can be rebuilt without embedding.

One conversation is searched exactly (0.3 ms for 1,000 vectors with NumPy), and so are all conversations of an
owner with few vectors (`index.owner_index.EXACT_BELOW`). An owner with many vectors has a separate Chroma
collection (`index.chroma`): the cost of a filter in a shared collection would grow with the vectors of all
owners.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.common import forking
from langchain_threadmem.errors import InputError
from langchain_threadmem.index.vectors import NONE, Vectors
from langchain_threadmem.index.watermarks import Reached


class Found(NamedTuple):
    """The result of a vector search: keys of nodes and their cosines, the most similar first."""

    keys: NDArray[np.int64]
    similarity: NDArray[np.float32]


class VectorIndex(Protocol):
    """An index over all vectors of one owner and one embedding model.

    `name` is the name of its watermarks; a new, empty index needs a new name.
    """

    @property
    def name(self) -> str:
        """The name of the watermarks of the index."""

    def add(self, keys: Sequence[int], matrix: NDArray[np.float32]) -> None:
        """Add vectors; a stored key gets the new vector."""

    def remove(self, keys: Sequence[int]) -> None:
        """Drop vectors; unknown keys are ignored."""

    def search(self, vector: NDArray[np.float32], most: int) -> Found:
        """The nearest vectors, by cosine."""

    def count(self) -> int:
        """The number of vectors."""

    def keys(self) -> list[int]:
        """The keys of all vectors."""


@runtime_checkable
class ClearableIndex(VectorIndex, Protocol):
    """An index that can be emptied without leaving bytes of its vectors in files."""

    def clear(self) -> str:
        """Drop all vectors; return the reason why bytes may be left in files, or an empty text."""


def check_dimensions(vector: NDArray[np.float32], stored: int) -> None:
    """Check that the vector of a query has as many dimensions as stored vectors.

    Raises:
        InputError: It has more or fewer.
    """
    if len(vector) != stored:
        raise InputError(
            f"the query's vector has {len(vector)} dimensions, the stored vectors have {stored}; use one "
            "embedding model for both"
        )


def nearest_among(vectors: Vectors, vector: NDArray[np.float32], most: int) -> Found:
    """The vectors nearest to a unit vector, by cosine."""
    keys, _, matrix = vectors
    if not len(keys):
        return Found(keys, np.empty(0, np.float32))
    similarity = matrix @ vector
    best = np.argpartition(similarity, -most)[-most:] if len(keys) > most else np.arange(len(keys))
    best = best[np.argsort(-similarity[best], kind="stable")]
    return Found(keys[best], similarity[best])


class ExactIndex:
    """Vectors in one growing array, searched by a matrix product.

    Rows are never changed or removed, so a search may run while another thread adds rows.

    Example:
        >>> index = ExactIndex()
        >>> index.extend(Vectors(np.array([7, 9]), np.array([1, 2]), np.eye(2, dtype=np.float32)))
        >>> index.search(np.array([0, 1], np.float32), 1).keys.tolist()
        [9]
    """

    def __init__(self) -> None:
        self.vectors = NONE
        self.row_of: dict[int, int] = {}
        """Row of each key."""
        self._lock = forking.lock()
        self._buffer = NONE.matrix

    @property
    def last(self) -> int:
        """Number of the newest node; 0 if there is none."""
        seqs = self.vectors.seqs
        return int(seqs[-1]) if len(seqs) else 0

    def extend(self, news: Vectors) -> None:
        """Add the vectors of nodes newer than `last`."""
        with self._lock:
            fresh = news.seqs > self.last
            if not fresh.any():
                return
            added = news.among(fresh)
            count = len(self.row_of)
            total = count + len(added.keys)
            if total > len(self._buffer) or not count:
                grown = np.empty((max(total, 2 * count, 64), added.matrix.shape[1]), np.float32)
                grown[:count] = self._buffer[:count] if count else grown[:0]
                self._buffer = grown
            self._buffer[count:total] = added.matrix
            self.row_of.update((int(key), count + n) for n, key in enumerate(added.keys))
            self.vectors = Vectors(
                np.concatenate([self.vectors.keys, added.keys]),
                np.concatenate([self.vectors.seqs, added.seqs]),
                self._buffer[:total],
            )

    def search(self, vector: NDArray[np.float32], most: int) -> Found:
        """The nearest vectors, by cosine."""
        vectors = self.vectors
        if len(vectors.keys):
            check_dimensions(vector, vectors.matrix.shape[1])
        return nearest_among(vectors, vector, most)

    def of(self, keys: Sequence[int]) -> dict[int, NDArray[np.float32]]:
        """The vectors of nodes; nodes without a vector are omitted."""
        matrix = self.vectors.matrix
        return {key: matrix[row] for key in keys if (row := self.row_of.get(key)) is not None}


class ExactOwnerIndex:
    """The vectors of all trees of an owner in one exact index, and its watermark in each tree."""

    def __init__(self, model: str = "") -> None:
        self.model = model
        self.index = ExactIndex()
        self.reached: Mapping[int, Reached] = {}
        self._lock = forking.lock()

    def add(self, parts: Sequence[Vectors], reached: Mapping[int, Reached]) -> None:
        """Add vectors of trees, except vectors that another thread has added."""
        with self._lock:
            for part in parts:
                fresh = np.array([key not in self.index.row_of for key in part.keys.tolist()], np.bool_)
                keys, _, matrix = part.among(fresh)
                numbers = np.arange(len(keys)) + self.index.last + 1
                self.index.extend(Vectors(keys, numbers, matrix))
            self.reached = reached
