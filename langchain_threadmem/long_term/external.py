"""External Chroma collections, which are searched and never written.

The texts of a collection become units that are marked as external: their visits are not counted, and they are
neither forgotten nor stored. Similarity is the cosine of the collection's vectors, whatever distance the
collection uses. Chroma never embeds a query, since that would run code that stored data names
(CVE-2026-45829).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.errors import InputError, PersistenceError
from langchain_threadmem.tree.node import EPOCH
from langchain_threadmem.units.unit import MemoryUnit

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection


SOURCE = "external"
"""The source of a unit whose metadata has none."""
WORDS_AT_ONCE = 8
FEWEST = 64
"""The minimal number of texts that are compared by cosine; the collection may order by another distance."""


class ExternalUnit(NamedTuple):
    """A text of an external collection.

    Attributes:
        unit: The text as a unit; its `group_id` is the collection's name.
        vector: The unit vector; empty if the text was found by words.
        similarity: The cosine; 0.0 if the text was found by words.
    """

    unit: MemoryUnit
    vector: NDArray[np.float32]
    similarity: float


class ExternalCollection:
    """A Chroma collection to read from.

    Args:
        collection: The collection.

    Raises:
        InputError: The object is not a Chroma collection.
    """

    def __init__(self, collection: Collection) -> None:
        if not all(callable(getattr(collection, verb, None)) for verb in ("query", "get", "count")):
            raise InputError(
                f"{collection!r} is not a Chroma collection; "
                "pass client.get_collection(name, embedding_function=None)"
            )
        self._collection = collection
        self.name = str(collection.name)

    def count(self) -> int:
        """The number of texts in the collection."""
        return int(self._asked("count"))

    def search(self, vector: NDArray[np.float32], most: int) -> list[ExternalUnit]:
        """The texts nearest to a unit vector, the nearest first.

        Raises:
            InputError: The collection's vectors have other dimensions.
            PersistenceError: The collection cannot be read.
        """
        count = self.count()
        if not count or not most:
            return []
        found = self._asked(
            "query",
            query_embeddings=(self._scale() * vector)[np.newaxis, :],
            n_results=min(max(most, FEWEST), count),
            include=["embeddings", "documents", "metadatas"],
        )
        matrix = np.asarray(found["embeddings"][0], np.float32)
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        matrix = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
        similarity = matrix @ vector
        units = self._units(found["ids"][0], found["documents"], found["metadatas"], 0)
        order = np.argsort(-similarity, kind="stable")
        return [ExternalUnit(units[n], matrix[n], float(similarity[n])) for n in order[:most]]

    def holding(self, words: Sequence[str], most: int) -> list[MemoryUnit]:
        """Texts that contain one of the words, in no order."""
        forms = [form for word in words[:WORDS_AT_ONCE] for form in (word, word.capitalize(), word.upper())]
        conditions = [{"$contains": form} for form in dict.fromkeys(forms)]
        if not conditions:
            return []
        where: Any = conditions[0] if len(conditions) == 1 else {"$or": conditions}
        found = self._asked("get", where_document=where, limit=most, include=["documents", "metadatas"])
        return self._units(found["ids"], found["documents"], found["metadatas"])

    def named(self, ids: Sequence[str]) -> list[MemoryUnit]:
        """Texts by id; unknown ids are left out."""
        if not ids:
            return []
        found = self._asked("get", ids=list(dict.fromkeys(ids)), include=["documents", "metadatas"])
        return self._units(found["ids"], found["documents"], found["metadatas"])

    def _scale(self) -> np.float32:
        """The length of the collection's vectors, on which most distances depend."""
        sample = np.asarray(self._asked("get", limit=1, include=["embeddings"])["embeddings"], np.float32)
        return np.float32(np.linalg.norm(sample) or 1.0)

    def _asked(self, verb: str, **arguments: Any) -> Any:
        try:
            return getattr(self._collection, verb)(**arguments)
        except Exception as error:  # Chroma's errors have no common base class.
            if "dimension" in str(error):
                raise InputError(
                    f"the query's vector does not fit the external collection {self.name!r}: {error}; "
                    "use the embedding model of the collection"
                ) from error
            raise PersistenceError(
                f"the external collection {self.name!r} cannot be read: {error}; check that it exists"
            ) from error

    def _units(self, ids: Sequence[str], texts: Any, about: Any, row: int | None = None) -> list[MemoryUnit]:
        if row is not None:
            texts, about = texts and texts[row], about and about[row]
        texts, about = texts or [None] * len(ids), about or [None] * len(ids)
        return [
            self._unit(id, text or "", dict(metadata or {}))
            for id, text, metadata in zip(ids, texts, about, strict=True)
        ]

    def _unit(self, id: str, text: str, about: Mapping[str, Any]) -> MemoryUnit:
        begun = _time(about.get("creation_time"))
        rank = about.get("rank")
        return MemoryUnit(
            id=id,
            content=text,
            source=_text(about.get("source")) or SOURCE,
            creation_time=begun,
            end_time=_time(about.get("end_time"), begun),
            rank=rank if isinstance(rank, int) and not isinstance(rank, bool) else 0,
            group_id=self.name,
            pre_id=_text(about.get("pre_id")),
            next_id=_text(about.get("next_id")),
            metadata={**about, "external": self.name},
        )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _time(value: object, otherwise: datetime = EPOCH) -> datetime:
    try:
        if isinstance(value, str):
            read = datetime.fromisoformat(value)
            return read if read.tzinfo else read.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return otherwise
    return otherwise
