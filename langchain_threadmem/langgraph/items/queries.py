"""SQL: items by owner, namespace and key; message lists by owner and id."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Float,
    Integer,
    LargeBinary,
    Text,
    bindparam,
    delete,
    exists,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql

from langchain_threadmem.errors import EncryptionError
from langchain_threadmem.index import vectors as embeddings
from langchain_threadmem.maintenance.upkeep import Upkeep
from langchain_threadmem.storage import encryption_keys
from langchain_threadmem.storage.encryption import SEALED_ITEM, is_sealed, name_of_item
from langchain_threadmem.storage.row_security import check_sees_all_owners
from langchain_threadmem.storage.schema import chat_memory, item, item_vector, namespace
from langchain_threadmem.storage.statements import Conn, Statement, insert_of, within
from langchain_threadmem.tree.nodes import EVERYTHING

log = logging.getLogger(__package__)


class ItemRow(NamedTuple):
    """A stored item.

    Attributes:
        id: Number of the item, in the order of creation.
        path: The encoded namespace.
        key: The encoded key.
        value: JSON text.
        created: Time of creation, in seconds since 1970, UTC.
        updated: Time of the last change, in seconds since 1970, UTC.
        ttl: Minutes from the last use until the item expires; `None` for never.
    """

    id: int
    path: bytes
    key: bytes
    value: str
    created: float
    updated: float
    ttl: float | None


class NewItem(NamedTuple):
    """An item to be stored, with the fields of `ItemRow`."""

    path: bytes
    key: bytes
    value: str
    ttl: float | None


class ItemVectors(NamedTuple):
    """The vectors of items, as read in one transaction.

    Attributes:
        versions: (m, 2) id and version of all items, with or without vectors, in the order of ids.
        items: (n,) item id of each indexed text.
        matrix: (n, d) float32 unit vector of each indexed text.
    """

    versions: NDArray[np.int64]
    items: NDArray[np.int64]
    matrix: NDArray[np.float32]

    @classmethod
    def none(cls, dimensions: int) -> ItemVectors:
        """No vectors."""
        empty = np.empty(0, np.int64)
        return cls(empty.reshape(0, 2), empty, np.empty((0, dimensions), np.float32))


ITEMS_AT_ONCE = 1_000
"""The number of items that are read together to find unreadable ones."""
_OWNER: BindParameter[str] = bindparam("owner", type_=Text())
_NOW: BindParameter[float] = bindparam("now", type_=Float())
_KEY: BindParameter[bytes] = bindparam("key", type_=LargeBinary())


def _live() -> ColumnElement[bool]:
    return or_(item.c.expires.is_(None), item.c.expires > _NOW)


_range = (
    namespace.c.owner == _OWNER,
    namespace.c.path >= bindparam("low"),
    namespace.c.path < bindparam("high"),
)
_rows = select(
    item.c.id, namespace.c.path, item.c.key, item.c.value, item.c.created, item.c.updated, item.c.ttl
).join(namespace, namespace.c.id == item.c.namespace)
_ids_below = (
    select(item.c.id)
    .join(namespace, namespace.c.id == item.c.namespace)
    .where(*_range, _live())
    .order_by(item.c.id)
)
_VERSIONS = Statement(_ids_below.add_columns(item.c.version), "owner", "low", "high", "now")
_GET = Statement(
    _rows.where(
        namespace.c.owner == _OWNER, namespace.c.path == bindparam("path"), item.c.key == _KEY, _live()
    ),
    *("owner", "path", "key", "now"),
)
_BELOW = Statement(
    _ids_below.limit(bindparam("most", type_=BigInteger())).offset(bindparam("skip", type_=BigInteger())),
    *("owner", "low", "high", "now", "most", "skip"),
)
# The condition uses no indexed column, because SQLite would read all items of the owner before the ids.
_of_owner = namespace.c.owner.concat("") == _OWNER
_BY_IDS = Statement(_rows.where(_of_owner, within(item.c.id, "ids")), "owner", "ids")
_AFTER = Statement(
    _rows.where(namespace.c.owner == _OWNER, item.c.id > bindparam("after", type_=BigInteger()))
    .order_by(item.c.id)
    .limit(bindparam("most", type_=BigInteger())),
    *("owner", "after", "most"),
)
_VECTORS = Statement(
    select(item_vector.c.item, item_vector.c.vector).where(
        within(item_vector.c.item, "ids"), item_vector.c.model == bindparam("model")
    ),
    *("ids", "model"),
)
_PATHS = Statement(
    select(namespace.c.path)
    .where(*_range, exists().where(item.c.namespace == namespace.c.id, _live()))
    .order_by(namespace.c.path),
    *("owner", "low", "high", "now"),
)

_entered = postgresql.insert(namespace).values(owner=_OWNER, path=bindparam("path"))
_ENTER = Statement(
    # An update without a change locks an existing row and returns its id.
    _entered.on_conflict_do_update(
        index_elements=["owner", "path"], set_={"path": _entered.excluded.path}
    ).returning(namespace.c.id),
    *("owner", "path"),
)
_new = postgresql.insert(item).values(
    namespace=bindparam("namespace"),
    key=_KEY,
    value=bindparam("value"),
    created=_NOW,
    updated=_NOW,
    ttl=bindparam("ttl"),
    expires=bindparam("expires"),
    version=1,
)
_PUT = Statement(
    _new.on_conflict_do_update(
        index_elements=["namespace", "key"],
        set_={
            **{name: _new.excluded[name] for name in ("value", "updated", "ttl", "expires")},
            "version": item.c.version + 1,
        },
    ),
    *("namespace", "key", "value", "now", "ttl", "expires"),
)
_id_of = select(item.c.id).where(item.c.namespace == bindparam("namespace"), item.c.key == _KEY)
_DROP_VECTORS = Statement(delete(item_vector).where(item_vector.c.item.in_(_id_of)), "namespace", "key")
_DELETE = Statement(
    delete(item).where(item.c.namespace == bindparam("namespace"), item.c.key == _KEY).returning(item.c.id),
    *("namespace", "key"),
)
_PUT_VECTOR = Statement(
    insert(item_vector).from_select(
        ["item", "number", "model", "vector"],
        _id_of.add_columns(
            bindparam("number", type_=Integer()),
            bindparam("model", type_=Text()),
            bindparam("vector", type_=LargeBinary()),
        ),
    ),
    *("namespace", "key", "number", "model", "vector"),
)
_PROLONG = Statement(
    update(item)
    .where(
        item.c.id.in_(
            select(item.c.id)
            .where(within(item.c.id, "ids"), item.c.ttl.is_not(None), item.c.expires > _NOW)
            .where(item.c.namespace.in_(select(namespace.c.id).where(namespace.c.owner == _OWNER)))
            .with_for_update(skip_locked=True)
        )
    )
    .values(expires=_NOW + item.c.ttl * 60),
    *("owner", "ids", "now"),
)
_OWNERS = Statement(
    select(namespace.c.owner)
    .distinct()
    .join(item, item.c.namespace == namespace.c.id)
    .where(item.c.expires <= _NOW),
    "now",
)
_EXPIRED = Statement(
    select(item.c.id, item.c.namespace)
    .where(item.c.expires <= _NOW)
    .where(item.c.namespace.in_(select(namespace.c.id).where(namespace.c.owner == _OWNER)))
    .with_for_update(skip_locked=True),
    *("owner", "now"),
)
_EXPIRED_IN = Statement(
    select(item.c.id)
    .where(within(item.c.namespace, "namespaces"), item.c.expires <= _NOW)
    .order_by(item.c.id)
    .with_for_update(),
    *("namespaces", "now"),
)
_REMOVE_VECTORS = Statement(delete(item_vector).where(within(item_vector.c.item, "ids")), "ids")
_REMOVE = Statement(delete(item).where(within(item.c.id, "ids")), "ids")
_LOCK_EMPTY = Statement(
    select(namespace.c.id)
    .where(within(namespace.c.id, "ids"), ~exists().where(item.c.namespace == namespace.c.id))
    .with_for_update(skip_locked=True),
    "ids",
)
_LOCK_EMPTY_OF = Statement(
    select(namespace.c.id)
    .where(namespace.c.owner == _OWNER, ~exists().where(item.c.namespace == namespace.c.id))
    .with_for_update(skip_locked=True),
    "owner",
)
_PRUNE = Statement(
    delete(namespace).where(
        within(namespace.c.id, "ids"), ~exists().where(item.c.namespace == namespace.c.id)
    ),
    "ids",
)


def get(conn: Conn, owner: str, path: bytes, key: bytes, now: float) -> ItemRow | None:
    """An item by its key; `None` if it does not exist or has expired."""
    row = conn.one(_GET, owner, path, key, now)
    return None if row is None else _opened(conn, row)


def below(
    conn: Conn,
    owner: str,
    bounds: tuple[bytes, bytes],
    now: float,
    most: int = EVERYTHING,
    skip: int = 0,
) -> list[int]:
    """Ids of the items in a range of namespaces, oldest first.

    Args:
        skip: The number of ids to skip.
    """
    return [row[0] for row in conn.all(_BELOW, owner, *bounds, now, most, skip)]


def by_ids(conn: Conn, owner: str, ids: Sequence[int]) -> list[ItemRow]:
    """Items by their ids, in this order; items that cannot be decrypted are omitted, with a warning."""
    row_of: dict[int, ItemRow] = {}
    for row in conn.all(_BY_IDS, owner, json.dumps(ids)):
        try:
            row_of[row[0]] = _opened(conn, row)
        except EncryptionError as error:
            if conn.seal is None:
                raise
            log.warning("left out of a search: %s", error)
    return [row_of[id] for id in ids if id in row_of]


def vectors(conn: Conn, versions: NDArray[np.int64], model: str, before: ItemVectors) -> ItemVectors:
    """The vectors of items; only those of new and changed items are read.

    Vectors of a different length are omitted, since a different model with the same name made them.

    Args:
        before: The vectors that were read before.
    """
    if np.array_equal(versions, before.versions):
        return before
    common, old, new = np.intersect1d(
        before.versions[:, 0], versions[:, 0], assume_unique=True, return_indices=True
    )
    unchanged_ids = common[before.versions[old, 1] == versions[new, 1]]
    changed = np.setdiff1d(versions[:, 0], unchanged_ids, assume_unique=True)
    dimensions = before.matrix.shape[1]
    rows = conn.all(_VECTORS, json.dumps(changed.tolist()), model) if len(changed) else []
    halves = [(row[0], embeddings.opened(conn, row[1])) for row in rows]
    rows = [row for row in halves if len(row[1]) == 2 * dimensions]
    flat = np.frombuffer(b"".join([half for _, half in rows]), np.float16)
    unchanged = np.isin(before.items, unchanged_ids)
    return ItemVectors(
        versions,
        np.concatenate([before.items[unchanged], np.array([row[0] for row in rows], np.int64)]),
        np.concatenate([before.matrix[unchanged], flat.reshape(len(rows), dimensions).astype(np.float32)]),
    )


def versions(conn: Conn, owner: str, bounds: tuple[bytes, bytes], now: float) -> NDArray[np.int64]:
    """Id and version of the items in a range of namespaces, (n, 2), oldest first."""
    rows = conn.all(_VERSIONS, owner, *bounds, now)
    return np.array(rows, np.int64).reshape(len(rows), 2)


def paths(conn: Conn, owner: str, bounds: tuple[bytes, bytes], now: float) -> list[bytes]:
    """The non-empty namespaces in a range, sorted."""
    return [bytes(row[0]) for row in conn.all(_PATHS, owner, *bounds, now)]


def enter(conn: Conn, owner: str, paths: Collection[bytes], now: float) -> dict[bytes, int]:
    """Lock namespaces, create missing namespaces, and remove expired items from them.

    Returns:
        The ids of the namespaces.
    """
    ids: dict[bytes, int] = {}
    for path in sorted(paths):
        ((ids[path],),) = conn.all(_ENTER, owner, path)
    remove_ids(conn, [row[0] for row in conn.all(_EXPIRED_IN, json.dumps(list(ids.values())), now)])
    return ids


def put(conn: Conn, ids: dict[bytes, int], news: Iterable[NewItem], now: float) -> None:
    """Store items in entered namespaces; replaced items keep `created` and lose their vectors."""
    encryption_keys.claim(conn)
    rows = [(ids[new.path], _sealed(conn, new)) for new in news]
    conn.many(
        _PUT,
        [
            (parent, new.key, new.value, now, new.ttl, None if new.ttl is None else now + 60 * new.ttl)
            for parent, new in rows
        ],
    )
    conn.many(_DROP_VECTORS, [(parent, new.key) for parent, new in rows])


def put_vectors(
    conn: Conn,
    ids: dict[bytes, int],
    model: str,
    rows: Iterable[tuple[bytes, bytes, int, NDArray[np.float32]]],
) -> None:
    """Store vectors: namespace, key, number of the text, and unit vector of each."""
    conn.many(
        _PUT_VECTOR,
        [
            (ids[path], key, number, model, embeddings.stored(conn, vector))
            for path, key, number, vector in rows
        ],
    )


def remove(conn: Conn, ids: dict[bytes, int], names: Iterable[tuple[bytes, bytes]]) -> None:
    """Remove items of entered namespaces; missing items are ignored."""
    removed = [row[0] for path, key in names for row in conn.all(_DELETE, ids[path], key)]
    conn.run(_REMOVE_VECTORS, json.dumps(removed))


def prune(conn: Conn, ids: Iterable[int]) -> None:
    """Remove the empty namespaces among locked namespaces."""
    conn.run(_PRUNE, json.dumps(list(ids)))


def prune_all(conn: Conn, owner: str) -> int:
    """Remove the empty namespaces of an owner that no writer has locked; returns their number."""
    empty = [row[0] for row in conn.all(_LOCK_EMPTY_OF, owner)]
    prune(conn, empty)
    return len(empty)


def prolong(conn: Conn, owner: str, ids: Sequence[int], now: float) -> None:
    """Restart the time to live of items."""
    conn.run(_PROLONG, owner, json.dumps(ids), now)


def owners(conn: Conn, now: float) -> list[str]:
    """The owners with expired items.

    Raises:
        PersistenceError: Row-level security hides all owners but one.
    """
    check_sees_all_owners(conn)
    return [owner for (owner,) in conn.all(_OWNERS, now)]


def sweep(conn: Conn, owner: str, now: float) -> int:
    """Remove expired items and the namespaces that become empty; returns the number of items."""
    rows = conn.all(_EXPIRED, owner, now)
    remove_ids(conn, [row[0] for row in rows])
    empty = conn.all(_LOCK_EMPTY, json.dumps(sorted({row[1] for row in rows})))
    prune(conn, [row[0] for row in empty])
    return len(rows)


def unreadable(conn: Conn, owner: str) -> list[int]:
    """The numbers of an owner's items whose value is no JSON, or is encrypted with another key."""
    found, after = list[int](), 0
    while rows := conn.all(_AFTER, owner, after, ITEMS_AT_ONCE):
        found += [row[0] for row in rows if not _is_readable(conn, row)]
        after = rows[-1][0]
    return found


def _is_readable(conn: Conn, columns: Sequence[Any]) -> bool:
    if conn.seal is None and columns[3].startswith(SEALED_ITEM):
        return True  # A memory without the cipher cannot tell.
    try:
        json.loads(_opened(conn, columns).value)
    except (ValueError, EncryptionError):
        return False
    return True


def _sealed(conn: Conn, new: NewItem) -> NewItem:
    if (seal := conn.seal) is None:
        return new
    return new._replace(value=SEALED_ITEM + seal.text(name_of_item(new.path, new.key), new.value))


def _opened(conn: Conn, columns: Sequence[Any]) -> ItemRow:
    row = ItemRow(*columns)
    if (seal := conn.seal) is not None:
        opened = seal.open_text(name_of_item(row.path, row.key), row.value.removeprefix(SEALED_ITEM))
        return row._replace(value=opened)
    if row.value.startswith(SEALED_ITEM):
        raise EncryptionError(
            f"the item {bytes(row.key)!r} is encrypted; open the memory with the cipher that it was "
            "written with"
        )
    return row


def remove_ids(conn: Conn, ids: Sequence[int]) -> None:
    """Remove items and their vectors, by the numbers of the items."""
    if ids:
        conn.run(_REMOVE, json.dumps(ids))
        conn.run(_REMOVE_VECTORS, json.dumps(ids))


class _ItemsUpkeep(Upkeep):
    subject, noun = "the items of the store", "store item"

    def unreadable(self, conn: Conn, owner: str, *, remove: bool) -> int:
        """The number of items whose value is no JSON, or is encrypted with another key."""
        ids = unreadable(conn, owner)
        if remove:
            remove_ids(conn, ids)
        return len(ids)

    def prune(self, conn: Conn, owner: str) -> dict[str, int]:
        """Remove the empty namespaces of an owner."""
        return {"namespace": prune_all(conn, owner)}


UPKEEP = _ItemsUpkeep()


_this_list = (
    chat_memory.c.owner == bindparam("owner", type_=Text()),
    chat_memory.c.id == bindparam("id", type_=Text()),
)
_GET_LIST = Statement(select(chat_memory.c.messages).where(*_this_list), "owner", "id")
_PUT_LIST = insert_of(chat_memory, replace=True)
_REMOVE_LIST = Statement(delete(chat_memory).where(*_this_list), "owner", "id")


ListRow = tuple[str | None, str]
"""A message: its id, if it has one, and its body."""


def get_list(conn: Conn, owner: str, id: str) -> list[ListRow]:
    """The list of an id; empty if there is none.

    Raises:
        EncryptionError: The list is encrypted and the memory is not, or vice versa.
    """
    row = conn.one(_GET_LIST, owner, id)
    rows: list[ListRow] = [] if row is None else [(message, body) for message, body in json.loads(row[0])]
    if (seal := conn.seal) is not None:
        return [(message, seal.open_text(id, body)) for message, body in rows]
    if any(is_sealed(body) for _, body in rows):
        raise EncryptionError(
            f"chat memory {id!r} is encrypted; pass its cipher to MemorySystem(..., cipher=...)"
        )
    return rows


def put_list(conn: Conn, owner: str, id: str, rows: Sequence[ListRow], now: float) -> None:
    """Replace the list of an id."""
    encryption_keys.claim(conn)
    if (seal := conn.seal) is not None:
        rows = [(message, seal.text(id, body)) for message, body in rows]
    conn.run(_PUT_LIST, owner, id, json.dumps(rows), now)


def remove_list(conn: Conn, owner: str, id: str) -> None:
    """Remove the list of an id, if there is one."""
    conn.run(_REMOVE_LIST, owner, id)
