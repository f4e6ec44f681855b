"""A cipher for tests: authenticated, without a dependency, and slow."""

from __future__ import annotations

import hashlib
import hmac
import os


class StreamCipher:
    """Encrypts with a key stream of SHAKE-256, a random nonce and an authentication tag."""

    def __init__(self, key: bytes = b"key") -> None:
        self._key = key

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        nonce = os.urandom(16)
        hidden = self._mixed(nonce, plaintext)
        return "stream", nonce + self._tag(nonce + hidden) + hidden

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        nonce, tag, hidden = ciphertext[:16], ciphertext[16:48], ciphertext[48:]
        if ciphername != "stream" or tag != self._tag(nonce + hidden):
            raise ValueError("the tag does not fit")
        return self._mixed(nonce, hidden)

    def _mixed(self, nonce: bytes, data: bytes) -> bytes:
        stream = hashlib.shake_256(self._key + nonce).digest(len(data))
        return bytes(one ^ other for one, other in zip(data, stream, strict=True))

    def _tag(self, data: bytes) -> bytes:
        return hmac.digest(self._key, data, "sha256")
