"""The exceptions of the package, as a tree.

```
ThreadMemError
├── InputError (also ValueError)         an argument, a message or a file cannot be used
│   ├── MessageIdConflictError           the id of a message belongs to other content
│   ├── OwnerMismatchError               a run names another owner than the system has
│   ├── OwnerRequiredError               a call for the owner of a run was made without an owner
│   └── UnsupportedMessageError          a message cannot be stored exactly
├── NotFoundError (also KeyError)        a name or an id does not exist
│   ├── NodeNotFoundError                the conversation has no such node
│   ├── SessionNotFoundError             the owner has no such session
│   └── UnitNotFoundError                the owner has no such message or summary
├── InvalidGraphStateError               nodes do not form a tree: a cycle, a missing parent
├── SelectionError                       a selector failed, with on_selection_failure="raise"
├── ModelError                           a chat model failed, or its answer is unusable
├── EmbeddingError                       an embedding model failed
├── PersistenceError                     a file or a database cannot be read or written
│   ├── StorageBusyError                 the database was locked for longer than the time-out
│   ├── IndexInUseError                  another process has the directory of the vector index open
│   ├── EncryptionError                  a key is missing or wrong, or data is not encrypted
│   ├── LostDatabaseError                the database file was deleted or replaced while open
│   ├── NewerDatabaseError               a newer version of the package wrote the database
│   ├── OlderDatabaseError               a read-only database has the schema of an older version
│   └── ClosedError                      a database is used after `close()`
└── DriverError                          a flow is written or run wrongly
```

Each message shows the offending value (`!r`) and names the next step. `except ThreadMemError` catches all of
them; the bases in brackets let callers catch the built-in exceptions.
"""

from __future__ import annotations


class ThreadMemError(Exception):
    """The base class of all exceptions of the package."""


class InputError(ThreadMemError, ValueError):
    """An argument, a message or a file cannot be used."""


class MessageIdConflictError(InputError):
    """The id of a message belongs to a stored message with other content."""


class OwnerMismatchError(InputError):
    """A run of a graph names another owner than the memory system has."""


class OwnerRequiredError(InputError):
    """A call that serves the owner of a run was made without an owner."""


class UnsupportedMessageError(InputError):
    """A message has a value that cannot be stored and read back exactly."""


class NotFoundError(ThreadMemError, KeyError):
    """A name or an id does not exist."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument.
        return str(self.args[0]) if self.args else ""


class NodeNotFoundError(NotFoundError):
    """The conversation has no node with this id."""


class SessionNotFoundError(NotFoundError):
    """The owner has no session with this id."""


class UnitNotFoundError(NotFoundError):
    """The owner has no message and no summary with this id."""


class InvalidGraphStateError(ThreadMemError):
    """Nodes and edges do not form a tree."""


class SelectionError(ThreadMemError):
    """A node selector failed, and `on_selection_failure` is "raise"."""


class ModelError(ThreadMemError):
    """A chat model failed, or its answer is unusable."""


class EmbeddingError(ThreadMemError):
    """An embedding model failed, or its vectors are unusable."""


class PersistenceError(ThreadMemError):
    """A file or a database cannot be read or written."""


class StorageBusyError(PersistenceError):
    """The database was locked by another process for longer than the time-out."""


class IndexInUseError(PersistenceError):
    """Another process has the directory of the vector index open, in which Chroma would lose data."""


class EncryptionError(PersistenceError):
    """A key is missing or wrong, or stored data is not encrypted although a key is given."""


class LostDatabaseError(PersistenceError):
    """The file of a database was deleted or replaced while the database was open."""


class NewerDatabaseError(PersistenceError):
    """The database was written by a newer version of the package."""


class OlderDatabaseError(PersistenceError):
    """A read-only database has the schema of an older version of the package, and is not migrated."""


class ClosedError(PersistenceError):
    """A database is used after it was closed."""


class DriverError(ThreadMemError):
    """A flow yields a value that is not a step, or is run inside a transaction."""
