"""The settings of the derived indexes, and the vector index over all conversations of an owner."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from langchain_threadmem.common import forking
from langchain_threadmem.common.inputs import check_no_class
from langchain_threadmem.engine.runtime import Component, Resources, Runtime, SharedComponent
from langchain_threadmem.errors import InputError
from langchain_threadmem.index import vectors as embeddings
from langchain_threadmem.index import watermarks
from langchain_threadmem.index.chroma import (
    ChromaIndex,
    Claim,
    chroma_server,
    claim_of,
    close_client,
    is_installed,
    leave_to_parent,
    open_chroma,
)
from langchain_threadmem.index.language import ENGLISH, Language
from langchain_threadmem.index.vector_index import VectorIndex
from langchain_threadmem.storage.database import is_url

if TYPE_CHECKING:
    from chromadb.api import ClientAPI

log = logging.getLogger(__package__)


class IndexSettings(SharedComponent):
    """The settings of the derived indexes, and the Chroma client that all owners of a database share.

    A system configures the component before the first use of an index.
    """

    def __init__(self, resources: Resources) -> None:
        super().__init__(resources)
        self.configure(None)
        self._lock = forking.lock()
        self._client: ClientAPI | None = None
        self._claim: Claim | None = None
        self._owner: str | None = None

    def configure(
        self,
        vectors: str | Path | ClientAPI | VectorIndex | None,
        language: Language = ENGLISH,
        history: int = 1,
    ) -> None:
        """Configure the indexes; see `MemorySystem` for the arguments.

        Args:
            vectors: A directory, the URL of a Chroma server, a Chroma client or a `VectorIndex` for search
                over all conversations; `None` for a directory beside the database file.
            language: The language of the lexicon.
            history: The number of messages in one vector: a message and its ancestors.

        Raises:
            InputError: An argument has the wrong type, or the URL of the server cannot be used.
        """
        if not isinstance(language, Language):
            raise InputError(f"language={language!r} is not a Language; pass ENGLISH, PLAIN or Language(...)")
        check_no_class("vectors", vectors)
        index = ("get_or_create_collection", "search")
        if not (isinstance(vectors, str | Path | None) or any(hasattr(vectors, name) for name in index)):
            raise InputError(
                f"vectors={vectors!r} is not a vector index; pass a directory, the URL of a Chroma server, "
                "a Chroma client, or an object with the methods of VectorIndex"
            )
        self.language = language
        self.history = history
        self.vectors = vectors
        self.chooses_index = vectors is None
        """Whether a small number of vectors may be searched without the index."""
        self.server = chroma_server(vectors) if isinstance(vectors, str) and is_url(vectors) else None

    @property
    def directory(self) -> Path | None:
        """The directory of Chroma's files, unless a server or a client was passed; `None` for memory."""
        if isinstance(self.vectors, str | Path):
            return Path(self.vectors)
        path = self.resources.database.path
        return None if path is None else path.with_name(path.name + ".chroma")

    def client(self) -> ClientAPI | None:
        """The client of the Chroma server or directory, opened at the first call.

        Returns:
            `None` if another process has the lock of the directory beside the file, or if the caller named no
            index and the package chromadb is not installed.

        Raises:
            IndexInUseError: Another process has the lock of the directory that was passed.
            PersistenceError: The index that the caller has named cannot be opened.
        """
        with self._lock:
            if self.chooses_index and not is_installed():
                log.warning("the package chromadb is not installed: searching exactly in SQL instead")
                return None
            if self._client is None:
                if self.server is not None:
                    self._client = self.server()
                elif (opened := open_chroma(self.directory, passed=self.vectors is not None)) is not None:
                    self._client, self._claim = opened
            return self._client

    def passed_client(self, client: ClientAPI) -> ClientAPI:
        """A caller's own client, whose directory, if it has one, no other process may have open.

        Raises:
            IndexInUseError: Another process has it open.
        """
        with self._lock:
            if self._claim is None:
                self._claim = claim_of(client)
        return client

    def index_of(self, owner: str, index: VectorIndex) -> VectorIndex:
        """A caller's own index, which contains the vectors of one owner.

        Raises:
            InputError: Another owner uses the index.
        """
        self._owner = self._owner or owner
        if owner != self._owner:
            raise InputError(
                f"vectors={index!r} contains the vectors of {self._owner!r}, not those of {owner!r}; pass a "
                "directory, the URL of a Chroma server or a Chroma client, which have an index for each owner"
            )
        return index

    def prepare_for_child(self) -> bool:
        """Keep the settings; the Chroma client belongs to the parent process."""
        leave_to_parent(self._client if self.server is None else None)
        self._client, self._claim = None, None
        return True

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        self.language.forget()

    def close(self) -> None:
        """Close Chroma, and release its directory."""
        if self._client is not None:
            # Chroma caches clients by directory: a later client must not be the cached one, whose files may
            # have been replaced.
            close_client(self._client)
            self._client = None
        if self._claim is not None:
            self._claim.release()
            self._claim = None
        self.language.forget()


class Indexes(Component):
    """The derived indexes of one owner."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.settings = runtime.get(IndexSettings)
        self.lacks_words = runtime.read_only
        """Whether a search has to look for messages that the lexicon lacks; see `index.unindexed`."""
        self._lock = forking.lock()
        self._forget_index()

    def _forget_index(self) -> None:
        self.compared = False
        """Whether the open index was compared with SQL."""
        self._index: VectorIndex | None = None
        self._opened = False

    def prepare_for_child(self) -> bool:
        """Close the index; the child process opens it again."""
        self._forget_index()
        return True

    @property
    def language(self) -> Language:
        """The language of the lexicon."""
        return self.settings.language

    @property
    def lexicon(self) -> str:
        """The name of the watermark of the lexicon."""
        return watermarks.lexicon_of(self.language.name)

    @property
    def model(self) -> str:
        """The name under which vectors are stored; empty without an embedding model."""
        model = self.runtime.embedder.model
        return embeddings.with_history(model, self.settings.history) if model else ""

    @property
    def weak_below(self) -> float | None:
        """The cosine below which a text found by meaning alone is a weak hit; `None` if it is not known."""
        return self.runtime.embedder.weak_below if self.settings.history == 1 else None

    @property
    def keeps_index(self) -> bool:
        """Whether an index outside of the database may contain vectors."""
        settings = self.settings
        if self._index is not None or settings.server is not None:
            return True
        directory = settings.directory
        return not isinstance(settings.vectors, str | Path | None) or (
            directory is not None and directory.exists()
        )

    def index_of(self, model: str) -> VectorIndex | None:
        """The index over vectors of any model; `None` if it cannot be opened."""
        if model == self.model:
            return self.index()
        with self._lock:
            return self._open(model)

    def index(self) -> VectorIndex | None:
        """The index over all conversations of the owner; `None` for a search in SQL.

        The first call opens Chroma, which takes about 1 s. Do not call this method on an event loop.
        """
        with self._lock:
            if not self._opened:
                self._index = self._open(self.model)
                self._opened = True
            return self._index

    def _open(self, model: str) -> VectorIndex | None:
        if not model:
            return None
        settings, owner = self.settings, self.runtime.owner
        passed = settings.vectors
        name_of = partial(watermarks.index_of, model)
        if settings.server is None and passed is not None and not isinstance(passed, str | Path):
            if hasattr(passed, "get_or_create_collection"):
                return ChromaIndex(settings.passed_client(cast("ClientAPI", passed)), owner, model, name_of)
            return settings.index_of(owner, passed)
        in_memory = settings.server is None and settings.directory is None
        if in_memory and self.runtime.database.dialect != "sqlite":
            return None  # A database server has no local directory; `vectors=...` enables Chroma.
        client = settings.client()
        if client is None:
            return None
        # All in-memory clients of a process share their collections, so the name is unique to this memory.
        return ChromaIndex(client, f"{owner}/{uuid.uuid4()}" if in_memory else owner, model, name_of)
