"""SQL: proofs of encryption keys, by owner.

A proof is a short text that is encrypted with the first key of an owner. A cipher that cannot decrypt the
proof is refused before anything is written, and so is a memory without a cipher. Owners may have different
keys, or none. In databases of earlier versions, which have no proofs, encrypted conversations show the key.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from sqlalchemy import bindparam, or_, select, update

from langchain_threadmem.errors import EncryptionError
from langchain_threadmem.storage.encryption import SEALED_ITEM, Seal, is_sealed, name_of_item
from langchain_threadmem.storage.schema import (
    State,
    blob,
    chat_memory,
    checkpoint,
    item,
    key_proof,
    namespace,
    node,
    tree,
)
from langchain_threadmem.storage.statements import ONE, Conn, Statement

SAMPLE = 32
"""The number of rows per table that are decrypted if there is no proof, since single rows may be damaged."""
_PROOF = "threadmem"
_CHANGING = "threadmem: the key changes"
"""The text of the proof while a part of the data has another key; the present key decrypts the proof."""
_GET = Statement(select(key_proof.c.proof).where(key_proof.c.owner == bindparam("owner")), "owner")
_PUT = Statement.of(
    sqlite=f"INSERT INTO {key_proof.name} (owner, proof) VALUES (?, ?) ON CONFLICT DO NOTHING",
    postgresql=f"INSERT INTO {key_proof.name} (owner, proof) VALUES (%s, %s) ON CONFLICT DO NOTHING",
)
_SET = Statement(
    update(key_proof).where(key_proof.c.owner == bindparam("of")).values(proof=bindparam("proof")),
    "proof",
    "of",
)
_sealed_trees = (tree.c.owner == bindparam("owner"), tree.c.sealed)
_BODIES = Statement(
    select(node.c.message, node.c.body)
    .join(tree, tree.c.id == node.c.tree)
    .where(*_sealed_trees, node.c.state != int(State.PURGED))
    .order_by(node.c.key.desc())
    .limit(SAMPLE),
    "owner",
)
_ENCRYPTED = Statement(
    select(ONE).where(
        or_(
            select(key_proof.c.owner).where(key_proof.c.owner == bindparam("owner")).exists(),
            select(tree.c.id)
            .where(
                *_sealed_trees,
                or_(
                    select(node.c.key).where(node.c.tree == tree.c.id).exists(),
                    select(checkpoint.c.id).where(checkpoint.c.tree == tree.c.id).exists(),
                ),
            )
            .exists(),
        )
    ),
    "owner",
)
_VALUES = tuple(
    Statement(
        select(table.c.kind, table.c.data)
        .join(tree, tree.c.id == table.c.tree)
        .where(*_sealed_trees, table.c.kind.contains("+"))
        .limit(SAMPLE),
        "owner",
    )
    for table in (checkpoint, blob)
)
_ITEMS = Statement(
    select(namespace.c.path, item.c.key, item.c.value)
    .join(namespace, namespace.c.id == item.c.namespace)
    .where(namespace.c.owner == bindparam("owner"), item.c.value.startswith(SEALED_ITEM))
    .limit(SAMPLE),
    "owner",
)
_LISTS = Statement(
    select(chat_memory.c.id, chat_memory.c.messages)
    .where(chat_memory.c.owner == bindparam("owner"))
    .limit(SAMPLE),
    "owner",
)


def admit(conn: Conn, seal: Seal) -> bool:
    """Whether data of the owner was written with this key, but a proof is missing; changes nothing.

    Raises:
        EncryptionError: The data of the owner was written with another key.
    """
    if _is_proven(conn, seal):
        return False
    has_samples = False
    for decrypts in _samples(conn, seal):
        if decrypts:
            return True
        has_samples = True
    if has_samples:
        raise _wrong_key(seal)
    return False


def check(conn: Conn) -> None:
    """Compare the key of a transaction with the owner's proof.

    Raises:
        EncryptionError: The owner's data was written with another key.
    """
    if conn.seal is not None:
        _is_proven(conn, conn.seal)


def require(conn: Conn) -> None:
    """Check that a transaction does not lack the cipher of its owner."""
    plain = conn.plain
    if plain is None:
        return
    if conn.all(_ENCRYPTED, plain.owner):
        raise EncryptionError(
            f"the memory of {plain.owner!r} is encrypted; nothing was changed: pass its cipher to "
            "MemorySystem(..., cipher=...)"
        )
    plain.proven, conn.plain = True, None


def claim(conn: Conn) -> None:
    """`check` and `require` before texts are written; stores a proof if there is none."""
    seal = conn.seal
    require(conn)
    if seal is not None and not _is_proven(conn, seal):
        conn.run(_PUT, seal.owner, seal.text(seal.owner, _PROOF))
        if conn.dialect == "postgresql":  # another transaction may have stored its proof first
            _check_proof(seal, conn.all(_GET, seal.owner))


def begin_change(conn: Conn) -> None:
    """Record that the key changes; until `end_change` the previous cipher opens the memory."""
    seal = conn.seal
    assert seal is not None, "the memory is not encrypted"
    assert seal.previous is not None, "there is no new key"
    claim(conn)
    conn.run(_SET, Seal(seal.previous).text(seal.owner, _CHANGING), seal.owner)


def end_change(conn: Conn) -> None:
    """Store the proof of the new key, which alone opens the memory from now on."""
    seal = conn.seal
    assert seal is not None, "the memory is not encrypted"
    conn.run(_SET, seal.text(seal.owner, _PROOF), seal.owner)


def check_finished(seal: Seal) -> None:
    """Refuse a transaction with one key on a memory that has two."""
    if seal.unfinished and seal.previous is None:
        raise EncryptionError(
            f"the change of the key of the memory of {seal.owner!r} was interrupted, so a part of it has the "
            "new key; call rekey(new_cipher) again to complete it"
        )


def _is_proven(conn: Conn, seal: Seal) -> bool:
    if not seal.proven:
        rows = conn.all(_GET, seal.owner)
        _check_proof(seal, rows)
        seal.proven = bool(rows)
    return seal.proven


def _check_proof(seal: Seal, rows: Sequence[Sequence[str]]) -> None:
    for (proof,) in rows:
        try:
            seal.unfinished = seal.open_text(seal.owner, proof) == _CHANGING
        except EncryptionError as error:
            raise _wrong_key(seal, error) from error


def _wrong_key(seal: Seal, error: EncryptionError | None = None) -> EncryptionError:
    return EncryptionError(
        f"the memory of {seal.owner!r} was written with another key than the key of this cipher; nothing was "
        f"read or written; pass the cipher that it was written with{f' ({error})' if error else ''}"
    )


def _opens(seal: Seal, name: str, sealed: str) -> bool:
    try:
        seal.open_text(name, sealed)
    except EncryptionError:
        return False
    return True


def _samples(conn: Conn, seal: Seal) -> Iterator[bool]:
    """Whether the key decrypts each of several encrypted values."""
    owner = seal.owner
    for message, body in conn.all(_BODIES, owner):
        if is_sealed(body):
            yield _opens(seal, message, body)
    for statement in _VALUES:
        for kind, data in conn.all(statement, owner):
            yield seal.opens(kind.partition("+")[2], bytes(data))
    for path, name, value in conn.all(_ITEMS, owner):
        yield _opens(seal, name_of_item(path, name), value.removeprefix(SEALED_ITEM))
    for id, messages in conn.all(_LISTS, owner):
        for _, body in json.loads(messages):
            if is_sealed(body):
                yield _opens(seal, id, body)
