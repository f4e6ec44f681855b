"""Encryption of message content before it reaches the database.

A transaction with a `Seal` encrypts message bodies, summaries and vectors, and raises an error for a row that
is not encrypted, since such a row was written without the key. The caller provides the cipher. A cipher may
encrypt the same text differently each time, so rows are found by message id and compared after decryption.
The file therefore does not show which messages are equal; it shows ids, roles, times and lengths.
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
"""The number of cached decrypted texts; to decrypt a thread of a thousand messages takes 0.1 s."""
UNREADABLE_NOTE = "[This cannot be read.]"
"""Replaces a summary or a reason that is damaged, or encrypted with another key."""
SEALED_ITEM = "!"
"""The prefix of an encrypted value of a store; no JSON text begins with it."""
_HEAD = '{"sealed":'


class Cipher(Protocol):
    """LangGraph's `CipherProtocol`. An authenticated cipher, such as AES-EAX, also detects changed data."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]: ...
    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes: ...


def is_sealed(text: str) -> bool:
    """Whether a stored text is encrypted."""
    return text.startswith(_HEAD)


def name_of_item(path: bytes, key: bytes) -> str:
    """The name that an encrypted value of a store is bound to."""
    return f"{bytes(path).hex()}/{bytes(key).hex()}"


class Plain:
    """An owner whose transactions do not encrypt, in place of a `Seal`.

    Attributes:
        owner: The owner.
        proven: Whether the database has been asked, and no data of the owner is encrypted.
    """

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.proven = False


class Seal:
    """Writes and reads encrypted texts and vectors.

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
        self.previous: Cipher | None = None
        """The cipher of data that is not encrypted with `cipher` yet, while the key changes."""
        self.proven = False
        """Whether the database has a proof that the owner's memory was written with this key."""
        self.unfinished = False
        """Whether a change of the key was interrupted, so that `cipher` decrypts a part of the data only."""
        self._opened = LruCache[str, tuple[str | None, str]](REMEMBERED)
        self._equal = deque([cipher], maxlen=8)  # ciphers with the same key

    def for_owner(self, owner: str) -> Seal:
        """The seal of another owner with the same key; both share the cache of decrypted texts."""
        seal = Seal(self.cipher, owner)
        seal._opened, seal._equal = self._opened, self._equal
        return seal

    def change(self, cipher: Cipher) -> None:
        """Encrypt with another cipher from now on; data of the present cipher stays readable.

        Raises:
            InputError: The other cipher decrypts data of the present cipher.
        """
        if Seal(cipher).opens(*self.encrypt(b"a probe")):
            raise InputError(
                "the new cipher decrypts data of the present one, so it has the same key or no "
                "authentication; pass an authenticated cipher with another key"
            )
        self.cipher, self.previous = cipher, self.cipher
        self._equal.append(cipher)

    def renewed(self, kind: str, data: bytes) -> tuple[str, bytes] | None:
        """Data of the previous cipher, encrypted with the present one; `None` for any other data."""
        if self.opens(kind, data, self.cipher):
            return None
        try:
            return self.encrypt(self.decrypt(kind, data))
        except Exception:  # Ciphers have no common error class.
            return None

    def renewed_text(self, sealed: str) -> str | None:
        """`renewed` of a text that `text` has encrypted."""
        try:
            stored = json.loads(sealed)
            renewed = self.renewed(stored["sealed"], base64.b64decode(stored["data"]))
        except (ValueError, KeyError, TypeError):  # It is damaged.
            return None
        return None if renewed is None else _sealed(*renewed)

    def renewed_vector(self, sealed: bytes) -> bytes | None:
        """`renewed` of a vector that `vector` has encrypted."""
        kind, _, data = sealed.partition(b"\n")
        renewed = self.renewed(kind.decode("ascii", "replace"), data)
        return None if renewed is None else renewed[0].encode() + b"\n" + renewed[1]

    def forget(self) -> None:
        """Drop the decrypted texts that are cached."""
        self._opened.clear()

    def text(self, name: str | None, text: str) -> str:
        """Encrypt a text, bound to the name of its row; returns JSON text."""
        sealed = _sealed(*self.encrypt(json.dumps([name, text]).encode()))
        self._opened.put(sealed, (name, text))
        return sealed

    def open_text(self, name: str | None, sealed: str) -> str:
        """Decrypt a text that `text` has encrypted.

        Raises:
            EncryptionError: The text is not encrypted, has another key, or is bound to another name.
        """
        opened = self._opened.get(sealed)
        if opened is None:
            if not is_sealed(sealed):
                raise EncryptionError(
                    f"the stored data of {name!r} is not encrypted, but this memory is; "
                    "open it with a memory without a cipher"
                )
            try:
                stored = json.loads(sealed)
                data = self.decrypt(stored["sealed"], base64.b64decode(stored["data"]))
                owner, text = json.loads(data)
            except Exception as error:  # Ciphers have no common error class.
                raise _undecryptable(name, error) from error
            opened = owner, text
            self._opened.put(sealed, opened)
        if opened[0] != name:
            raise EncryptionError(
                f"the stored data of {name!r} was written for {opened[0]!r}; run verify() to see all damage"
            )
        return opened[1]

    def open_body(self, message: str, role: str, sealed: str) -> str:
        """`open_text` of a message's body; the body of a placeholder message if it cannot be decrypted."""
        try:
            return self.open_text(message, sealed)
        except EncryptionError:
            return unreadable(role)

    def open_note(self, message: str, sealed: str) -> str:
        """`open_text` of a summary or a reason; `UNREADABLE_NOTE` if it cannot be decrypted."""
        try:
            return self.open_text(message, sealed)
        except EncryptionError:
            return UNREADABLE_NOTE

    def opens(self, kind: str, data: bytes, cipher: Cipher | None = None) -> bool:
        """Whether a cipher, by default one of the seal's, decrypts data."""
        try:
            (cipher or self).decrypt(kind, data)
        except Exception:  # Ciphers have no common error class.
            return False
        return True

    def vector(self, data: bytes) -> bytes:
        """Encrypt a vector; the result begins with the name of the cipher."""
        kind, sealed = self.encrypt(data)
        return kind.encode() + b"\n" + sealed

    def open_vector(self, sealed: bytes) -> bytes:
        """Decrypt a vector that `vector` has encrypted.

        Raises:
            EncryptionError: The vector was encrypted with another key.
        """
        kind, _, data = sealed.partition(b"\n")
        try:
            return self.decrypt(kind.decode("ascii"), data)
        except Exception as error:  # Ciphers have no common error class.
            raise _undecryptable("a vector", error) from error

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        """Encrypt bytes; with `decrypt`, a seal is a cipher whose key may change."""
        result: object = self.cipher.encrypt(plaintext)
        match result:
            case str(kind), bytes(data):
                return kind, data
        raise _wrong_result(self.cipher, "encrypt", "(name, bytes)", result)

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        """Decrypt bytes with the present or the previous cipher."""
        try:
            return _decrypted(self.cipher, ciphername, ciphertext)
        except Exception:  # Ciphers have no common error class.
            if self.previous is None:
                raise
            return _decrypted(self.previous, ciphername, ciphertext)

    def check(self, cipher_: Cipher) -> None:
        """Check that another cipher has the same key.

        Raises:
            InputError: The other cipher has another key.
        """
        if any(cipher_ is cipher for cipher in self._equal):
            return
        try:
            self.open_text("key", Seal(cipher_).text("key", "the same"))
        except EncryptionError as error:
            raise InputError(
                "this memory is encrypted with another key; open a separate MemorySystem for each key"
            ) from error
        self._equal.append(cipher_)


def _sealed(kind: str, data: bytes) -> str:
    return json.dumps({"sealed": kind, "data": base64.b64encode(data).decode()}, separators=(",", ":"))


def _decrypted(cipher: Cipher, kind: str, data: bytes) -> bytes:
    result: object = cipher.decrypt(kind, data)
    if not isinstance(result, bytes):
        raise _wrong_result(cipher, "decrypt", "bytes", result)
    return result


def _wrong_result(cipher: Cipher, method: str, expected: str, result: object) -> EncryptionError:
    # The type only, since the value may be secret.
    return EncryptionError(
        f"{cipher!r}.{method}() returned {type(result).__name__}; it must return {expected}"
    )


def _undecryptable(name: str | None, error: Exception) -> EncryptionError:
    return EncryptionError(
        f"the stored data of {name!r} cannot be decrypted with the key of this memory ({error!r}); "
        "pass the key that it was written with"
    )
