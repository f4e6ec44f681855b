"""Chroma: the vector index of an owner with many vectors, its client, and the lock of its directory.

Two processes with an embedded Chroma client on one directory lose data without an error. So only the process
that has the directory's lock opens Chroma. Another process is refused if the directory or its client was
passed; if the directory is the one beside the file, it logs a warning once and searches SQL. Chroma always
receives vectors, and never an embedding function: a function that Chroma rebuilds from a stored configuration
can run arbitrary code (CVE-2026-45829).
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.common import forking
from langchain_threadmem.errors import IndexInUseError, InputError, PersistenceError
from langchain_threadmem.index.vector_index import Found

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection


log = logging.getLogger(__package__)
ADD_AT_ONCE = 100
"""The number of vectors in one call of Chroma, which blocks all other threads for about 50 ms."""
REMOVE_AT_ONCE = 1000
PROBES = 32
"""The number of vectors of a deleted collection whose bytes are searched in Chroma's database."""
CHROMA_FILE = "chroma.sqlite3"
SCRUB_SECONDS = 10.0
"""The time to wait while Chroma uses its database, in seconds."""
_SECRET = re.compile("//.*@")
_inherited: list[object] = []
"""Objects that the parent process had open at the fork; see `_keep_open`."""


class ChromaIndex:
    """One collection of a Chroma client.

    Args:
        client: Any Chroma client: embedded, HTTP or cloud.
        owner: The owner of the vectors.
        model: The embedding model of the vectors.
        name_of: The name of the watermarks, by the id of the collection.
    """

    def __init__(self, client: ClientAPI, owner: str, model: str, name_of: Callable[[str], str]) -> None:
        self._name_of = name_of
        digest = hashlib.sha256(f"{owner}\\0{model}".encode("utf-8", "surrogatepass")).hexdigest()[:40]
        self._client = client
        self._title = f"threadmem-{digest}"
        self._collection = self._create()

    @property
    def name(self) -> str:
        """The name of the watermarks; an emptied index is a new collection and has a new name."""
        return self._name_of(str(self._collection.id))

    def _create(self) -> Collection:
        with self._typed_errors():
            return self._client.get_or_create_collection(
                self._title, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
            )

    def _call(self, verb: str, **arguments: Any) -> Any:
        from chromadb.errors import NotFoundError

        with self._typed_errors():
            try:
                return getattr(self._collection, verb)(**arguments)
            except NotFoundError:  # Another process has cleared the index.
                self._collection = self._create()
                return getattr(self._collection, verb)(**arguments)

    @contextmanager
    def _typed_errors(self) -> Iterator[None]:
        """Raise the errors of a connection, of a server and of damaged files as a `PersistenceError`.

        Raises:
            PersistenceError: The server does not answer or refuses, or Chroma cannot read its files.
        """
        import httpx
        from chromadb.errors import ChromaError

        try:
            yield
        except httpx.TransportError as error:
            host = self._client.get_settings().chroma_server_host
            raise PersistenceError(
                f"the Chroma server {host!r} does not answer ({error}); check that it is running"
            ) from error
        except Exception as error:
            # A server that was killed may have lost a part of its files. For the answer of another server,
            # such as a proxy, chromadb 1.5.9 raises `Exception` itself.
            if not isinstance(error, ChromaError) and type(error) is not Exception:
                raise
            raise PersistenceError(
                f"Chroma cannot use its index ({str(error)[:200]}); if its server works, reindex() fills it "
                "again from the database"
            ) from error

    def add(self, keys: Sequence[int], matrix: NDArray[np.float32]) -> None:
        """Add vectors; a stored key gets the new vector."""
        for start in range(0, len(keys), ADD_AT_ONCE):
            ids = [str(key) for key in keys[start : start + ADD_AT_ONCE]]
            self._call("upsert", ids=ids, embeddings=matrix[start : start + ADD_AT_ONCE])

    def remove(self, keys: Sequence[int]) -> None:
        """Drop vectors; unknown keys are ignored."""
        for start in range(0, len(keys), REMOVE_AT_ONCE):
            self._call("delete", ids=[str(key) for key in keys[start : start + REMOVE_AT_ONCE]])

    def search(self, vector: NDArray[np.float32], most: int) -> Found:
        """The nearest vectors, by cosine."""
        most = min(most, self.count())
        if most == 0:
            return Found(np.empty(0, np.int64), np.empty(0, np.float32))
        result = self._call(
            "query", query_embeddings=vector[np.newaxis, :], n_results=most, include=["distances"]
        )
        return Found(
            np.array([int(key) for key in result["ids"][0]], np.int64),
            1 - np.array(result["distances"][0], np.float32),
        )

    def count(self) -> int:
        """The number of vectors."""
        return int(self._call("count"))

    def keys(self) -> list[int]:
        """The keys of all vectors."""
        return [int(key) for key in self._call("get", include=[])["ids"]]

    def clear(self) -> str:
        """Drop all vectors; return the reason why bytes may be left in files, or an empty text.

        Chroma keeps the bytes of deleted vectors, and the files of deleted collections. So this method
        deletes the collection and its folder, rewrites Chroma's database with VACUUM, and searches it for a
        sample of the vectors.
        """
        from chromadb.errors import NotFoundError

        sample: Sequence[Any] = ()
        with suppress(PersistenceError):  # A damaged index is deleted too.
            sample = self._call("get", limit=PROBES, include=["embeddings"])["embeddings"]
        with self._typed_errors(), suppress(NotFoundError):  # Another process may have deleted it.
            self._client.delete_collection(self._title)
        self._collection = self._create()
        settings = self._client.get_settings()
        if settings.chroma_server_host is not None:
            return (
                f"the Chroma server {settings.chroma_server_host!r}: its files cannot be looked at from here"
            )
        if not settings.is_persistent:
            return ""
        probes = [np.asarray(vector, np.float32)[:16].tobytes() for vector in sample]
        try:
            return _scrub(Path(settings.persist_directory), probes)
        except (OSError, sqlite3.Error) as error:
            return f"the vector directory {settings.persist_directory!r}: {error}"


def _scrub(directory: Path, probes: Sequence[bytes]) -> str:
    """Remove the files of deleted collections from a Chroma directory; return the reason if some are left.

    Raises:
        OSError: A folder cannot be removed.
        sqlite3.Error: Chroma's database cannot be rewritten.
    """
    # Folders are listed before the rows are read: Chroma creates a row before its folder.
    folders = [path for path in directory.iterdir() if (path / "data_level0.bin").is_file()]
    file = directory / CHROMA_FILE
    with closing(sqlite3.connect(file, timeout=SCRUB_SECONDS, isolation_level=None)) as connection:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        collections = {row[0] for row in connection.execute("SELECT id FROM segments")}
    for folder in folders:
        if folder.name not in collections:
            shutil.rmtree(folder)
    files = [path for path in directory.glob(f"{CHROMA_FILE}*") if path.is_file()]
    if any(probe in data for data in map(Path.read_bytes, files) for probe in probes):
        return f"the vector directory {str(directory)!r}: Chroma's database still contains erased vectors"
    return ""


class Claim:
    """A lock on a directory, which a process has until it releases the lock or ends.

    The lock is an open transaction on a small SQLite file. The operating system releases it on every platform
    when the process ends. Several claims in one process share the lock.
    """

    _locks: dict[Path, tuple[sqlite3.Connection, int]] = {}  # noqa: RUF012 - one table per process is the point
    _guard = forking.lock()

    def __init__(self, directory: Path) -> None:
        self._directory = directory.resolve()
        self._open = False

    def take(self) -> bool:
        """Take the lock; return whether this process has it."""
        with self._guard:
            claim = self._locks.get(self._directory)
            if claim is None:
                connection = self._lock_file()
                if connection is None:
                    return False
                claim = (connection, 0)
            self._locks[self._directory] = (claim[0], claim[1] + 1)
            self._open = True
            return True

    def _lock_file(self) -> sqlite3.Connection | None:
        """The open transaction that is the lock; `None` if another process has it."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(
                self._directory / "claim.db", timeout=0, isolation_level=None, check_same_thread=False
            )
            try:
                connection.execute("BEGIN EXCLUSIVE")
            except BaseException:
                connection.close()
                raise
        except (OSError, sqlite3.OperationalError) as error:
            if "locked" in str(error):
                return None
            raise PersistenceError(
                f"cannot use the vector directory {str(self._directory)!r}: {error}; "
                "check its permissions, or pass another directory as vectors="
            ) from error
        return connection

    @classmethod
    def leave_to_parent(cls) -> None:
        """Drop all locks in a forked child, without closing the connections of the parent."""
        if cls._locks:
            _keep_open(cls._locks)
            cls._locks = {}

    def require(self) -> None:
        """Take the lock.

        Raises:
            IndexInUseError: Another process has it.
        """
        if not self.take():
            raise IndexInUseError(
                f"another process has the vector directory {str(self._directory)!r} open, and Chroma loses "
                "data if two processes write to one directory; close the other one, share a server "
                "(`chroma run`, vectors='http://host:8000'), or pass another directory as vectors="
            )

    def release(self) -> None:
        """Release the claim; the last claim of the process releases the lock."""
        with self._guard:
            if not self._open:
                return
            self._open = False
            connection, count = self._locks.pop(self._directory)
            if count > 1:
                self._locks[self._directory] = (connection, count - 1)
            else:
                connection.close()


def _keep_open(inherited: object) -> None:
    """Keep an object that belongs to the parent process; its deletion would close it, or wait for threads.

    The list alone keeps it until the exit of the child, when Python deletes the variables of modules.
    """
    _inherited.append(inherited)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))


def close_client(client: ClientAPI) -> None:
    """Close a client and the connections to its server, which Chroma leaves open."""
    client.close()  # type: ignore[attr-defined] # the base class lacks it
    for opened in (client, getattr(client, "_admin_client", None)):
        session = getattr(getattr(opened, "_server", None), "_session", None)
        if session is not None:
            session.close()


def leave_to_parent(client: ClientAPI | None) -> None:
    """Keep an embedded client open after a fork, since its threads run in the parent process."""
    Claim.leave_to_parent()
    if client is not None:
        _keep_open(client)


def chroma_server(url: str) -> Callable[[], ClientAPI]:
    """A function that connects to the Chroma server behind a URL.

    Args:
        url: `http://host:8000` or `https://host`. `https://TOKEN@host` sends a bearer token,
            `https://user:password@host` a password; `?tenant=` and `?database=` select these on the server.

    Raises:
        InputError: The URL is not the URL of a server.
    """
    form = "http://host:8000 or https://TOKEN@host?tenant=...&database=..."
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in ("http", "https"):
        raise InputError(
            f"{_SECRET.sub('//***@', url)!r} is not the URL of a Chroma server; write {form}, or a directory"
        )
    location = f"{parts.scheme}://{host}" + (f":{port}" if port else "")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if parts.path.strip("/") or parts.fragment or set(options) - {"tenant", "database"}:
        raise InputError(
            f"{_SECRET.sub('//***@', url)!r} has parts other than host, port, login, tenant and database; "
            f"write {form}, or pass a chromadb.HttpClient"
        )
    secure = parts.scheme == "https"
    login: dict[str, str] = {}
    if parts.username is not None:
        names = [unquote(part) for part in (parts.username, parts.password) if part is not None]
        kind = (
            "basic_authn.BasicAuthClientProvider" if len(names) > 1 else "token_authn.TokenAuthClientProvider"
        )
        login = {
            "chroma_client_auth_provider": f"chromadb.auth.{kind}",
            "chroma_client_auth_credentials": ":".join(names),
        }

    def connect() -> ClientAPI:
        check_installed(f"the Chroma server {location!r}")
        import chromadb
        from chromadb.config import Settings

        settings = Settings(anonymized_telemetry=False, **login)  # type: ignore[arg-type]
        try:
            return chromadb.HttpClient(
                host, port or (443 if secure else 8000), secure, None, settings, **options
            )
        except Exception as error:  # Chroma raises ValueError here, and errors of its dependencies.
            raise PersistenceError(
                f"cannot use the Chroma server {location!r}: {error}; check that it is running, and its token"
            ) from error

    return connect


def claim_of(client: ClientAPI) -> Claim | None:
    """The claim of the directory of an embedded client; `None` for a client of a server, or in memory.

    Raises:
        IndexInUseError: Another process has the directory open.
    """
    settings = client.get_settings() if hasattr(client, "get_settings") else None
    if settings is None or not settings.is_persistent or settings.chroma_server_host is not None:
        return None
    claim = Claim(Path(settings.persist_directory))
    claim.require()
    return claim


def is_installed() -> bool:
    """Whether the package chromadb is installed; does not import it."""
    return find_spec("chromadb") is not None


def check_installed(index: str) -> None:
    """Refuse an index of Chroma without the package chromadb.

    Raises:
        PersistenceError: The package is not installed.
    """
    if not is_installed():
        raise PersistenceError(
            f"{index} requires the package chromadb, which is not installed; run pip install chromadb, or "
            "leave out vectors=, and vectors are searched in SQL"
        )


def open_chroma(directory: Path | None, *, passed: bool = False) -> tuple[ClientAPI, Claim | None] | None:
    """An embedded Chroma client, or `None` for a search in SQL.

    A warning is logged if another process has the directory open, this process has opened Chroma there with
    other settings, or the parent process had Chroma open when it forked this process.

    Args:
        directory: The directory of Chroma; `None` for an index in memory.
        passed: Whether a caller has passed the directory, so that no other search replaces it.

    Raises:
        IndexInUseError: Another process has the passed directory open.
        PersistenceError: The files in the directory are damaged, the directory cannot be used, or the package
            chromadb is not installed.
    """
    check_installed(f"a vector index in {str(directory or 'memory')!r}")
    claim = None
    if _inherited:
        log.warning("Chroma was open when this process was forked: searching exactly in SQL instead")
        return None
    if directory is not None:
        claim = Claim(directory)
        if passed:
            claim.require()
        elif not claim.take():
            log.warning(
                "another process has the vector directory %r open: searching exactly in SQL instead",
                str(directory),
            )
            return None
    import chromadb
    from chromadb.api.shared_system_client import SharedSystemClient
    from chromadb.config import Settings

    settings = Settings(anonymized_telemetry=False)
    try:
        if directory is None:
            return chromadb.EphemeralClient(settings), None
        return chromadb.PersistentClient(str(directory), settings), claim
    except Exception as error:  # The errors of Chroma have no common base class.
        if claim is not None:
            claim.release()
        if isinstance(error, ValueError) and "different settings" in str(error):
            log.warning("%s: searching exactly in SQL instead", error)
            return None
        # Chroma caches a client that did not start, and would use it at the next attempt.
        SharedSystemClient._identifier_to_system.pop(str(directory), None)
        raise PersistenceError(
            f"Chroma cannot open the vector directory {str(directory)!r}: {error}; delete it, and the next "
            "search fills it again, or pass another directory as vectors="
        ) from error
