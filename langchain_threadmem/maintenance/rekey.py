"""Change of the encryption key of an owner's memory."""

from __future__ import annotations

from functools import partial

from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.maintenance import encrypted_rows
from langchain_threadmem.storage import encryption_keys
from langchain_threadmem.storage.encryption import Cipher, Seal


def rekey(runtime: Runtime, cipher: Cipher) -> Flow[int]:
    """Encrypt all data of an owner with another key; see `MemorySystem.rekey`."""
    yield from runtime.settle()
    seal = runtime.change_key(cipher)
    yield from Sql(encryption_keys.begin_change, write=True)
    total = 0
    # A second round finds what other threads have written meanwhile.
    while count := (yield from _renew(runtime, seal)):
        total += count
    yield from Sql(encryption_keys.end_change, write=True)
    seal.previous, seal.unfinished = None, False
    return total


def _renew(runtime: Runtime, seal: Seal) -> Flow[int]:
    """Encrypt the rows with the previous key again; returns their number."""
    total = 0
    for entry, under in (yield from Sql(partial(encrypted_rows.parts, owner=runtime.owner))):
        after: encrypted_rows.PrimaryKey | None = ()
        while after is not None:
            batch = partial(encrypted_rows.renew, entry=entry, under=under, after=after, seal=seal)
            count, after = yield from Sql(batch, write=True)
            total += count
    return total
