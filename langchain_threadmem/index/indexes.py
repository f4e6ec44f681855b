"""The derived indexes of one owner: their settings, and the vector index over all conversations."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from langchain_threadmem.common import forking
from langchain_threadmem.engine.runtime import Component, Runtime
from langchain_threadmem.errors import InputError
from langchain_threadmem.index import vectors as embeddings
from langchain_threadmem.index import watermarks
from langchain_threadmem.index.language import ENGLISH, Language
from langchain_threadmem.index.vector_index import (
    ChromaIndex,
    Claim,
    VectorIndex,
    chroma_server,
    close_client,
    leave_to_parent,
    open_chroma,
)
from langchain_threadmem.storage.urls import is_url

if TYPE_CHECKING:
    from chromadb.api import ClientAPI


class Indexes(Component):
    """The settings of the derived indexes, and the vector index over all conversations of the owner.

    A system configures the component before anything is indexed.
    """

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.configure(None)
        self._lock = forking.lock()
        self._close()

    def configure(
        self,
        vectors: str | Path | ClientAPI | VectorIndex | None,
        language: Language = ENGLISH,
        history: int = 1,
    ) -> None:
        """Configure the indexes; see `MemorySystem` for the arguments.

        Args:
            vectors: A directory, the URL of a Chroma server, a Chroma client or an index of one's own for
                search over all conversations; `None` for a directory beside the database file.
            language: The language of the lexicon.
            history: How many messages are embedded together: each, and those before it in its thread.

        Raises:
            InputError: An argument has the wrong type, or the URL of the server cannot be used.
        """
        if not isinstance(language, Language):
            raise InputError(f"language={language!r} is no Language; pass ENGLISH, PLAIN or Language(...)")
        index = ("get_or_create_collection", "search")
        if not (isinstance(vectors, str | Path | None) or any(hasattr(vectors, name) for name in index)):
            raise InputError(
                f"vectors={vectors!r} is no vector index; pass a directory, the URL of a Chroma server, "
                "a Chroma client, or an object with the methods of VectorIndex"
            )
        self.language = language
        self.history = history
        self.chooses_index = vectors is None
        """Whether few vectors may be searched without the index."""
        self._vectors = vectors
        self._server = chroma_server(vectors) if isinstance(vectors, str) and is_url(vectors) else None

    def _close(self) -> None:
        self.compared = False
        """Whether the index was compared with SQL since it was opened."""
        self._index: VectorIndex | None = None
        self._client: ClientAPI | None = None
        self._claim: Claim | None = None
        self._looked = False

    def survives_fork(self) -> bool:
        """The settings survive; Chroma belongs to the parent."""
        leave_to_parent(self._client if self._server is None else None)
        self._close()
        return True

    @property
    def lexicon(self) -> str:
        """The name of the watermark of the lexicon."""
        return watermarks.lexicon_of(self.language.name)

    @property
    def model(self) -> str:
        """The name that vectors of messages are stored under; empty if there is no embedding model."""
        model = self.runtime.embedder.model
        return embeddings.with_history(model, self.history) if model else ""

    @property
    def keeps_index(self) -> bool:
        """Whether there may be an index outside of the database that holds anything."""
        if self._index is not None or self._server is not None:
            return True
        directory = self._directory()
        return not isinstance(self._vectors, str | Path | None) or (
            directory is not None and directory.exists()
        )

    def index_of(self, model: str) -> VectorIndex | None:
        """The index over vectors of any model, to empty it; `None` if it cannot be opened."""
        if model == self.model:
            return self.index()
        with self._lock:
            return self._open(model)

    def index(self) -> VectorIndex | None:
        """The index over all conversations of the owner; `None` if SQL must serve instead.

        Opens Chroma at the first call, which takes about a second: not to be called on an event loop.
        """
        with self._lock:
            if not self._looked:
                self._index = self._open(self.model)
                self._looked = True
            return self._index

    def _directory(self) -> Path | None:
        """Where Chroma keeps its files, unless a server or a client was passed; `None` for memory."""
        if isinstance(self._vectors, str | Path):
            return Path(self._vectors)
        path = self.runtime.database.path
        return None if path is None else path.with_name(path.name + ".chroma")

    def _open(self, model: str) -> VectorIndex | None:
        given, owner = self._vectors, self.runtime.owner
        if not model:
            return None
        if self._server is not None:
            self._client = self._server()
            return ChromaIndex(self._client, owner, model, watermarks.index_of(model))
        if given is not None and not isinstance(given, str | Path):
            if hasattr(given, "get_or_create_collection"):
                return ChromaIndex(cast("ClientAPI", given), owner, model, watermarks.index_of(model))
            return given
        directory = self._directory()
        if directory is None and self.runtime.database.dialect != "sqlite":
            return None  # A server's files have no place beside them here: pass vectors=... to use Chroma.
        if self._client is None:
            opened = open_chroma(directory)
            if opened is None:
                return None
            self._client, self._claim = opened
        # In memory every process-wide client shares its collections, so each memory needs a name of its own.
        name = owner if directory is not None else f"{owner}/{uuid.uuid4()}"
        return ChromaIndex(self._client, name, model, watermarks.index_of(model))

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        self.language.forget()

    def close(self) -> None:
        """Close Chroma, and let go of its directory."""
        if self._client is not None:
            # Chroma keeps clients by directory: the next to open it must not get one that saw older files.
            close_client(self._client)
            self._client = None
        if self._claim is not None:
            self._claim.release()
            self._claim = None
        self.language.forget()
