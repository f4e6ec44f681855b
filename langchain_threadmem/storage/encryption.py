"""Encryption of message content before it reaches the database.

A database that holds a `Seal` writes message bodies, summaries and vectors encrypted and reads nothing else:
a plain row where an encrypted one belongs was written without the key, or by somebody who has none, and is
refused. The cipher is the caller's. Since it may write the same text differently each time, nothing is ever
found by what was written: rows are found by message id, and compared once they are open. So equal messages
are not to be told by looking at the file; ids, roles, times and lengths are.
"""

from __future__ import annotations

import base64
import json
from collections import deque
from typing import Protocol

from langchain_threadmem.common.cache import LruCache
from langchain_threadmem.errors import EncryptionError, InputError
from langchain_threadmem.messages.codec import unreadable

REMEMBERED = 8192
"""How many opened texts are kept at hand; deciphering a thread of a thousand at each turn takes 0.1 s."""
UNREADABLE_NOTE = "[This cannot be read.]"
"""In the place of a summary or a reason that is damaged, or encrypted with another key."""
SEALED_ITEM = "!"
"""Comes before an encrypted value of a store: no JSON text begins with it."""
_HEAD = '{"sealed":'


class Cipher(Protocol):
    """LangGraph's `CipherProtocol`. A good one also notices what was tampered with, as AES-EAX does."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]: ...
    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes: ...


def is_sealed(text: str) -> bool:
    """Whether a stored text is an encrypted one."""
    return text.startswith(_HEAD)


def name_of_item(path: bytes, key: bytes) -> str:
    """What an encrypted value of a store belongs to."""
    return f"{bytes(path).hex()}/{bytes(key).hex()}"


class Seal:
    """Writes and reads encrypted texts and vectors.

    Args:
        cipher: Encrypts and decrypts bytes.
        owner: Whose memory it is for.

    Example:
        >>> class Mirror:
        ...     def encrypt(self, plaintext):
        ...         return "mirror", plaintext[::-1]
        ...     def decrypt(self, ciphername, ciphertext):
        ...         return ciphertext[::-1]
        >>> seal = Seal(Mirror())
        >>> seal.text("h1", "Hello")
        '{"sealed":"mirror","data":"XSJvbGxlSCIgLCIxaCJb"}'
        >>> seal.open_text("h1", seal.text("h1", "Hello"))
        'Hello'
    """

    def __init__(self, cipher: Cipher, owner: str = "") -> None:
        self.cipher = cipher
        self.owner = owner
        self.proven = False
        """Whether the owner's memory is known to be written with this key."""
        self._opened = LruCache[str, tuple[str | None, str]](REMEMBERED)
        self._equal = deque([cipher], maxlen=8)  # ciphers that were found to have the same key

    def for_owner(self, owner: str) -> Seal:
        """The seal of another owner with the same key; both share the cache of decrypted texts."""
        seal = Seal(self.cipher, owner)
        seal._opened, seal._equal = self._opened, self._equal
        return seal

    def forget(self) -> None:
        """Drop the decrypted texts that are cached."""
        self._opened.clear()

    def text(self, name: str | None, text: str) -> str:
        """A text encrypted, as JSON text; `name` is what it belongs to, and goes into it."""
        kind, data = self._encrypted(json.dumps([name, text]).encode())
        sealed = json.dumps({"sealed": kind, "data": base64.b64encode(data).decode()}, separators=(",", ":"))
        self._opened.put(sealed, (name, text))
        return sealed

    def open_text(self, name: str | None, sealed: str) -> str:
        """The text that `text` was given.

        Raises:
            EncryptionError: It is not encrypted, does not open with this key, or belongs to something else.
        """
        found = self._opened.get(sealed)
        if found is None:
            if not is_sealed(sealed):
                raise EncryptionError(
                    f"what is stored of {name!r} is not encrypted, as this memory demands; it was written "
                    "without encryption, or by somebody else"
                )
            try:
                stored = json.loads(sealed)
                data = self._decrypted(stored["sealed"], base64.b64decode(stored["data"]))
                owner, text = json.loads(data)
            except Exception as error:  # each cipher has errors of its own
                raise _unopened(name, error) from error
            found = owner, text
            self._opened.put(sealed, found)
        if found[0] != name:
            raise EncryptionError(f"what is stored of {name!r} was written for {found[0]!r}; it is not read")
        return found[1]

    def open_body(self, message: str, role: str, sealed: str) -> str:
        """`open_text` of a message's body; of one that does not open, the body of one that says so."""
        try:
            return self.open_text(message, sealed)
        except EncryptionError:
            return unreadable(role)

    def open_note(self, message: str, sealed: str) -> str:
        """`open_text` of something that was written about a message, or a word that it cannot be read."""
        try:
            return self.open_text(message, sealed)
        except EncryptionError:
            return UNREADABLE_NOTE

    def opens(self, kind: str, data: bytes) -> bool:
        """Whether the cipher takes what is said to be encrypted by it."""
        try:
            self.cipher.decrypt(kind, data)
        except Exception:  # each cipher has errors of its own
            return False
        return True

    def vector(self, data: bytes) -> bytes:
        """A vector encrypted, with the cipher's name before it."""
        kind, sealed = self._encrypted(data)
        return kind.encode() + b"\n" + sealed

    def open_vector(self, sealed: bytes) -> bytes:
        """The vector that `vector` was given.

        Raises:
            EncryptionError: It does not open with this key.
        """
        kind, _, data = sealed.partition(b"\n")
        try:
            return self._decrypted(kind.decode("ascii"), data)
        except Exception as error:  # each cipher has errors of its own
            raise _unopened("a vector", error) from error

    def _encrypted(self, plain: bytes) -> tuple[str, bytes]:
        found: object = self.cipher.encrypt(plain)
        match found:
            case str(kind), bytes(data):
                return kind, data
        raise _wrong(self.cipher, "encrypt", "(name, bytes)", found)

    def _decrypted(self, kind: str, data: bytes) -> bytes:
        found: object = self.cipher.decrypt(kind, data)
        if not isinstance(found, bytes):
            raise _wrong(self.cipher, "decrypt", "bytes", found)
        return found

    def check(self, other: Cipher) -> None:
        """Refuse another key.

        Raises:
            InputError: What one encrypts, the other does not open.
        """
        if any(other is cipher for cipher in self._equal):
            return
        try:
            self.open_text("key", Seal(other).text("key", "the same"))
        except EncryptionError as error:
            raise InputError(
                "this memory is encrypted with another key; open a MemorySystem of its own for each key"
            ) from error
        self._equal.append(other)


def _wrong(cipher: Cipher, verb: str, wanted: str, found: object) -> EncryptionError:
    # Its type, not its value: that may be what is to be kept secret.
    return EncryptionError(f"{cipher!r}.{verb}() returned {type(found).__name__}; it returns {wanted}")


def _unopened(name: str | None, error: Exception) -> EncryptionError:
    return EncryptionError(
        f"what is stored of {name!r} does not open with this memory's key ({error!r}); "
        "pass the key that it was written with"
    )
