"""Every error this package raises on purpose, drawn as a tree.

```
ThreadMemError
├── InputError (also ValueError)         what was passed in cannot be used
│   ├── MessageIdConflictError           an id that already stands for other content
│   ├── OwnerMismatchError               a run for another owner than the system's
│   └── UnsupportedMessageError          a message that cannot be stored exactly
├── NotFoundError (also KeyError)        what was named does not exist
│   ├── NodeNotFoundError                no such node in this conversation
│   ├── SessionNotFoundError             no such session of this owner
│   └── UnitNotFoundError                no such message or summary of this owner
├── InvalidGraphStateError               a tree that is not one: a cycle, a dangling parent
├── SelectionError                       a selector failed and was told to say so
├── ModelError                           a chat model gave no usable answer
├── EmbeddingError                       text could not be turned into vectors
├── PersistenceError                     a file or a database could not be read or written
│   ├── StorageBusyError                 another process held the database for too long
│   ├── EncryptionError                  encrypted with another key, or where it should not be
│   ├── LostDatabaseError                its file was deleted or replaced while it was open
│   ├── NewerDatabaseError               written by a newer version of this package
│   └── ClosedError                      used after `close()`
└── DriverError                          a flow was written or driven wrongly
```

Each message shows the value it is about (`!r`) and names the next step. Catch
`ThreadMemError` for everything; the bases in brackets let code that knows nothing
of this package catch the usual built-in.
"""

from __future__ import annotations


class ThreadMemError(Exception):
    """The root of every error raised on purpose by this package."""


class InputError(ThreadMemError, ValueError):
    """An argument, a message or a line of a file cannot be used as it is."""


class MessageIdConflictError(InputError):
    """A message id is already taken by a message with other content."""


class OwnerMismatchError(InputError):
    """A run names another owner than the one whose memory it would use."""


class UnsupportedMessageError(InputError):
    """A message holds a value that cannot be stored and read back exactly."""


class NotFoundError(ThreadMemError, KeyError):
    """What was named does not exist."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument; a sentence should stay a sentence.
        return str(self.args[0]) if self.args else ""


class NodeNotFoundError(NotFoundError):
    """No node with that id in this conversation."""


class SessionNotFoundError(NotFoundError):
    """No session with that id of this owner."""


class UnitNotFoundError(NotFoundError):
    """No message and no summary with that id of this owner."""


class InvalidGraphStateError(ThreadMemError):
    """The nodes and edges do not form a tree."""


class SelectionError(ThreadMemError):
    """A node selector failed, and the memory was told to raise rather than fall back."""


class ModelError(ThreadMemError):
    """A chat model could not be asked, or its answer could not be used."""


class EmbeddingError(ThreadMemError):
    """Text could not be turned into vectors."""


class PersistenceError(ThreadMemError):
    """A file or a database could not be read or written."""


class StorageBusyError(PersistenceError):
    """Another process kept the database locked for longer than the time-out."""


class EncryptionError(PersistenceError):
    """Something stored is encrypted and there is no key for it, or another one, or is not and should be."""


class LostDatabaseError(PersistenceError):
    """The file of a database was deleted or replaced while it was open."""


class NewerDatabaseError(PersistenceError):
    """The database was written by a newer version of this package."""


class ClosedError(PersistenceError):
    """A database was used after it had been closed."""


class DriverError(ThreadMemError):
    """A flow yielded something that is no step, or was driven where it must not be."""
