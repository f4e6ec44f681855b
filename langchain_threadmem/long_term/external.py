"""External Chroma collections, which are searched and never written.

The texts of a collection become units that are marked as external: their visits are not counted, and they are
neither forgotten nor stored. Similarity is the cosine of the collection's vectors, for any distance of the
collection. Chroma never embeds a query, because its embedding function is code that the stored configuration
names (CVE-2026-45829).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.common.inputs import time_of
from langchain_threadmem.errors import InputError, PersistenceError
from langchain_threadmem.index.units.unit import MemoryUnit
from langchain_threadmem.tree.node import EPOCH

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection


SOURCE = "external"
"""The source of a unit without a source in its metadata."""
WORDS_AT_ONCE = 8
FEWEST = 64
"""The minimum number of texts that are compared by cosine, since the collection may use another distance."""


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
    """A Chroma collection that is only read.

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
        return int(self._call("count"))

    def search(self, vector: NDArray[np.float32], most: int) -> list[ExternalUnit]:
        """The texts nearest to a unit vector, the nearest first.

        Raises:
            InputError: The collection's vectors have other dimensions.
            PersistenceError: The collection cannot be read.
        """
        count = self.count()
        if not count or not most:
            return []
        result = self._call(
            "query",
            query_embeddings=(self._scale() * vector)[np.newaxis, :],
            n_results=min(max(most, FEWEST), count),
            include=["embeddings", "documents", "metadatas"],
        )
        matrix = np.asarray(result["embeddings"][0], np.float32)
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        matrix = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
        similarity = matrix @ vector
        units = self._units(*(result[name] and result[name][0] for name in ("ids", "documents", "metadatas")))
        order = np.argsort(-similarity, kind="stable")
        return [ExternalUnit(units[n], matrix[n], float(similarity[n])) for n in order[:most]]

    def holding(self, words: Sequence[str], most: int) -> list[MemoryUnit]:
        """Texts that contain one of the words, in no order."""
        forms = [form for word in words[:WORDS_AT_ONCE] for form in (word, word.capitalize(), word.upper())]
        conditions = [{"$contains": form} for form in dict.fromkeys(forms)]
        if not conditions:
            return []
        where: Any = conditions[0] if len(conditions) == 1 else {"$or": conditions}
        result = self._call("get", where_document=where, limit=most, include=["documents", "metadatas"])
        return self._units(result["ids"], result["documents"], result["metadatas"])

    def named(self, ids: Sequence[str]) -> list[MemoryUnit]:
        """Texts by id; unknown ids are omitted."""
        if not ids:
            return []
        result = self._call("get", ids=list(dict.fromkeys(ids)), include=["documents", "metadatas"])
        return self._units(result["ids"], result["documents"], result["metadatas"])

    def _scale(self) -> np.float32:
        """The length of the collection's vectors, on which most distances depend."""
        sample = np.asarray(self._call("get", limit=1, include=["embeddings"])["embeddings"], np.float32)
        return np.float32(np.linalg.norm(sample) or 1.0)

    def _call(self, verb: str, **arguments: Any) -> Any:
        try:
            return getattr(self._collection, verb)(**arguments)
        except Exception as error:  # The errors of Chroma have no common base class.
            if "dimension" in str(error):
                raise InputError(
                    f"the query's vector does not fit the external collection {self.name!r}: {error}; "
                    "use the embedding model of the collection"
                ) from error
            raise PersistenceError(
                f"the external collection {self.name!r} cannot be read: {error}; check that it exists"
            ) from error

    def _units(self, ids: Sequence[str], texts: Any, metadatas: Any) -> list[MemoryUnit]:
        texts, metadatas = texts or [None] * len(ids), metadatas or [None] * len(ids)
        return [
            self._unit(id, text or "", dict(metadata or {}))
            for id, text, metadata in zip(ids, texts, metadatas, strict=True)
        ]

    def _unit(self, id: str, text: str, metadata: Mapping[str, Any]) -> MemoryUnit:
        created = time_of(metadata.get("creation_time")) or EPOCH
        rank = metadata.get("rank")
        return MemoryUnit(
            id=id,
            content=text,
            source=_text(metadata.get("source")) or SOURCE,
            creation_time=created,
            end_time=time_of(metadata.get("end_time")) or created,
            rank=rank if isinstance(rank, int) and not isinstance(rank, bool) else 0,
            group_id=self.name,
            pre_id=_text(metadata.get("pre_id")),
            next_id=_text(metadata.get("next_id")),
            metadata={**metadata, "external": self.name},
        )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
