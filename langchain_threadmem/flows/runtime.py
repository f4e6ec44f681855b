"""What a flow runs on: a database, an owner, an embedding model, indexes and caches.

One `Runtime` is shared by all conversations of a `MemorySystem`. It holds resources and derived values only:
closing it loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from langchain_threadmem.background import Gradual
from langchain_threadmem.core import forking
from langchain_threadmem.core.bodies import Parsed
from langchain_threadmem.core.cache import LruCache
from langchain_threadmem.core.digests import Digests
from langchain_threadmem.core.english import ENGLISH
from langchain_threadmem.core.language import Language
from langchain_threadmem.core.ledger import Ledger
from langchain_threadmem.core.names import check_name
from langchain_threadmem.core.turns import TurnIndex
from langchain_threadmem.core.usage import Usage
from langchain_threadmem.errors import InputError
from langchain_threadmem.flows.embedder import Embedder
from langchain_threadmem.flows.parts import Parts
from langchain_threadmem.flows.steps import arun, run
from langchain_threadmem.flows.visits import Visits, settle
from langchain_threadmem.storage.database import (
    ServerDatabase,
    SqliteDatabase,
    is_url,
    on_event_loop,
    unopened,
)
from langchain_threadmem.storage.queries import embeddings, keys, marks
from langchain_threadmem.storage.queries.reading import Hot
from langchain_threadmem.storage.sealing import Cipher, Seal
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.storage.vectors import (
    ChromaIndex,
    Claim,
    ExactIndex,
    VectorIndex,
    Whole,
    chroma_server,
    close_client,
    leave_to_parent,
    open_chroma,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from chromadb.api import ClientAPI
    from langchain_core.embeddings import Embeddings

    from langchain_threadmem.core.short_term import ShortTermMemory
    from langchain_threadmem.core.units import MemoryUnit
    from langchain_threadmem.storage.external import ExternalCollection
    from langchain_threadmem.storage.vectors import Claim, VectorIndex

log = logging.getLogger(__name__)
CACHED_TREES = 64
CACHED_LEDGERS = 16
CACHED_SEGMENTS = 32
MOST_PARSED = 20_000


class Runtime(forking.Forkable):
    """Resources and caches of one owner's memory; made by `Runtime.open`.

    Args:
        database: Where the truth is.
        owner: Whose memory it is; every query names it.
        embedder: The embedding model.
        vectors: A directory, the URL of a Chroma server, a Chroma client or an index of one's own for search
            over all conversations; `None` for a directory beside the database file.
        language: What recall knows of the language that is spoken.
        history: How many messages are embedded together: each, and those before it in its thread.
    """

    def __init__(
        self,
        database: SqliteDatabase | ServerDatabase,
        owner: str,
        embedder: Embedder,
        vectors: str | Path | ClientAPI | VectorIndex | None = None,
        language: Language = ENGLISH,
        history: int = 1,
    ) -> None:
        self.language = language
        self.history = history
        self.database = database
        self.owner = owner
        self.embedder = embedder
        self.parts = Parts()
        """Writes and reads parts of messages that JSON does not know; a saver puts its own in their place."""
        self.searched = False
        """Whether meanings were searched: what is said from then on is embedded in the background."""
        self.ahead = Gradual("indexing in the background")
        """Embeds what was said before anybody asks, and fills the index."""
        self.usage = Usage()
        self.gone: set[int] = set()
        """Trees that were erased: whoever knows one looks its conversation up again."""
        self.short_term: ShortTermMemory[Hashable, MemoryUnit] | None = None
        self.external: list[ExternalCollection] = []
        self._vectors = vectors
        self._server = chroma_server(vectors) if isinstance(vectors, str) and is_url(vectors) else None
        self.chooses_index = vectors is None
        """Whether few vectors may be searched without the index."""
        self._lock = forking.lock()
        self._begin()
        self.watch()

    def _begin(self) -> None:
        """Hold nothing at hand yet."""
        self.turns = LruCache[int, TurnIndex](CACHED_TREES)
        self.ledgers = LruCache[tuple[int, int], Ledger](CACHED_LEDGERS)
        self.digests = LruCache[tuple[int, int], Digests](CACHED_LEDGERS)
        self.exact = LruCache[tuple[int, int, str], ExactIndex](CACHED_TREES)
        self.hot = LruCache[int, Hot](CACHED_SEGMENTS)
        self.parsed: Parsed = {}
        self.visits = Visits()
        self.unembedded: dict[int, None] = {}
        """Trees that wait to be embedded in the background, in their order."""
        self.embedded_now: frozenset[int] = frozenset()
        """Trees that are being embedded there."""
        self.whole = Whole()
        self.compared = False
        """Whether the index was compared with SQL since it was opened."""
        self._index: VectorIndex | None = None
        self._client: ClientAPI | None = None
        self._claim: Claim | None = None
        self._looked = False

    def after_fork(self, *, child: bool) -> None:
        """In a child nothing is at hand: another thread may have been changing it, and Chroma's are gone."""
        if child:
            leave_to_parent(self._client if self._server is None else None)
            self._begin()

    @classmethod
    def open(
        cls,
        url: str | Path | None,
        *,
        owner: str,
        embeddings: Embeddings | Literal[False] | None = None,
        vectors: str | Path | ClientAPI | VectorIndex | None = None,
        cipher: Cipher | None = None,
        language: Language = ENGLISH,
        history: int = 1,
        pool_size: int | None = None,
        max_overflow: int | None = None,
        read_only: bool = False,
    ) -> Runtime:
        """Open the database behind a URL; see `MemorySystem` for the arguments.

        On an event loop, where opening would block all that run on it, the first transaction opens it.
        """
        check_name("an owner", owner)
        database = unopened(url, pool_size=pool_size, max_overflow=max_overflow, read_only=read_only)
        runtime = cls(database, owner, Embedder(embeddings), vectors, language, history)
        try:
            if cipher is not None:
                runtime.encrypt(cipher)
            if not on_event_loop():
                database.open()
        except BaseException:
            database.close()
            raise
        return runtime

    def encrypt(self, cipher: Cipher) -> None:
        """Encrypt what is said from now on, and read nothing else.

        Raises:
            InputError: It is encrypted with another key already, or `cipher` is no cipher.
            EncryptionError: What is stored was written with another key.
        """
        if not (callable(getattr(cipher, "encrypt", None)) and callable(getattr(cipher, "decrypt", None))):
            raise InputError(
                f"{cipher!r} is no cipher; pass an object with encrypt() and decrypt(), such as "
                "EncryptedSerializer.from_pycryptodome_aes(...).cipher"
            )
        seal = self.database.seal
        if seal is None:
            seal = Seal(cipher, self.owner)

            def admitted(conn: Conn) -> None:
                if keys.admit(conn, seal):
                    keys.claim(conn, seal)

            if on_event_loop() and not self.database.opened:
                self.database.first = admitted
            elif self.database.read(lambda conn: keys.admit(conn, seal)):
                self.database.write(admitted)
            self.database.encrypt(seal)
        else:
            seal.check(cipher)

    @property
    def encrypted(self) -> bool:
        """Whether what is said is encrypted: then no index on disk may hold it."""
        return self.database.seal is not None

    @property
    def lexicon(self) -> str:
        """The name of the mark that says how far words were entered."""
        return marks.lexicon_of(self.language.name)

    @property
    def model(self) -> str:
        """The name that vectors of messages are stored under; empty if there is no embedding model."""
        model = self.embedder.model
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
            return self._open_index(model)

    def index(self) -> VectorIndex | None:
        """The index over all conversations of the owner; `None` if SQL must serve instead.

        Opens Chroma at the first call, which takes about a second: not to be called on an event loop.
        """
        with self._lock:
            if not self._looked:
                self._index = self._open_index(self.model)
                self._looked = True
            return self._index

    def _directory(self) -> Path | None:
        """Where Chroma keeps its files, unless a server or a client was passed; `None` for memory."""
        if isinstance(self._vectors, str | Path):
            return Path(self._vectors)
        path = self.database.path
        return None if path is None else path.with_name(path.name + ".chroma")

    def _open_index(self, model: str) -> VectorIndex | None:
        given = self._vectors
        if not model:
            return None
        if self._server is not None:
            self._client = self._server()
            return ChromaIndex(self._client, self.owner, model, marks.index_of(model))
        if given is not None and not isinstance(given, str | Path):
            if hasattr(given, "get_or_create_collection"):
                return ChromaIndex(cast("ClientAPI", given), self.owner, model, marks.index_of(model))
            return given
        directory = self._directory()
        if directory is None and self.database.dialect != "sqlite":
            return None  # A server's files have no place beside them here: pass vectors=... to use Chroma.
        if self._client is None:
            opened = open_chroma(directory)
            if opened is None:
                return None
            self._client, self._claim = opened
        client = self._client
        # In memory every process-wide client shares its collections, so each memory needs a name of its own.
        owner = self.owner if directory is not None else f"{self.owner}/{uuid.uuid4()}"
        return ChromaIndex(client, owner, model, marks.index_of(model))

    def parsed_before(self) -> Parsed:
        """Bodies that were parsed before: each turn of a chat reads again what the turn before it read."""
        if len(self.parsed) > MOST_PARSED:
            self.parsed.clear()
        return self.parsed

    def forget_texts(self, gone: Iterable[int], changed: Iterable[int]) -> None:
        """Let go of what is held at hand of trees: some are gone, some have lost messages."""
        self.gone.update(gone)
        for tree in changed:
            self.turns.drop(tree)
        for segment in self.hot:
            self.hot.drop(segment)
        self.parsed.clear()
        self.embedder.forget()
        self.whole = Whole()

    def close(self) -> None:
        """Write down what is counted only, close the database and let go of the index.

        What is being embedded is waited for a little; what is not embedded yet is when it is next needed.
        """
        self.ahead.close()
        try:
            if not self.database.closed:
                run(settle(self), self)
        finally:
            self.database.close()
            self._release()

    async def aclose(self) -> None:
        """`close`, on the event loop."""
        await asyncio.to_thread(self.ahead.close)
        try:
            if not self.database.closed:
                await arun(settle(self), self)
        finally:
            await self.database.aclose()
            self._release()

    def _release(self) -> None:
        if self._client is not None:
            # Chroma keeps clients by directory: the next to open it must not get one that saw older files.
            close_client(self._client)
            self._client = None
        if self._claim is not None:
            self._claim.release()
            self._claim = None


@cache
def bare() -> Runtime:
    """A runtime for flows that ask a model and touch no memory: one for the process, empty."""
    return Runtime.open(None, owner="nobody", embeddings=False)
