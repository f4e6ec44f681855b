"""The verb `unfold`, which returns the messages of a summary."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_threadmem.common.inputs import is_whole
from langchain_threadmem.common.visited import Visited
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import InputError, UnitNotFoundError
from langchain_threadmem.index.units import queries as unit_queries
from langchain_threadmem.index.units.queries import read_units
from langchain_threadmem.index.units.unit import MemoryUnit
from langchain_threadmem.index.units.visits import Visits
from langchain_threadmem.messages.ids import LONGEST_ID, name_of
from langchain_threadmem.recall.results import Recollection
from langchain_threadmem.storage.statements import Conn


def named(runtime: Runtime, name: str, session: str | None) -> Flow[MemoryUnit]:
    """The unit with an id.

    Raises:
        UnitNotFoundError: No unit has the id.
        InputError: Messages of several sessions have the id.
    """
    owner = runtime.owner
    name = name_of("a unit's id", name, most=LONGEST_ID)
    session = None if session is None else name_of("a session id", session)
    yield from runtime.get(Visits).settle()
    return (yield from Sql(lambda conn: read_units(conn, owner, [_key_of(conn, owner, name, session)])[0]))


def unfold(
    runtime: Runtime, unit: MemoryUnit | Recollection | str, levels: int | None
) -> Flow[list[MemoryUnit]]:
    """The units `levels` below a unit, or all messages below it, in order.

    Raises:
        UnitNotFoundError: No unit has the id.
        InputError: `levels` is negative, or messages of several sessions have the id.
    """
    if levels is not None and not is_whole(levels, 0):
        raise InputError(
            f"levels={levels!r} is not an integer of at least 0; pass a number of levels, or None for all"
        )
    owner = runtime.owner
    if isinstance(unit, str):
        unit = name_of("a unit's id", unit, most=LONGEST_ID)
    elif not isinstance(unit, MemoryUnit | Recollection):
        raise InputError(f"{unit!r:.200} is not a unit; pass a MemoryUnit, a Recollection, or an id")
    yield from runtime.get(Visits).settle()

    def read(conn: Conn) -> list[MemoryUnit]:
        if isinstance(unit, str):
            key = _key_of(conn, owner, unit, None)
        elif isinstance(unit, Recollection):
            key = key_of_hit(conn, owner, unit)
        else:
            key = _key_of(conn, owner, unit.id, unit.group_id, unit.rank)
        return read_units(conn, owner, leaves(conn, [key], levels))

    return (yield from Sql(read))


def leaves(conn: Conn, keys: Sequence[int], levels: int | None = None) -> list[int]:
    """The keys of the units `levels` below units, or of all messages below them, in order."""
    current, visited = list(keys), Visited()
    while levels is None or levels > 0:
        below = unit_queries.children(conn, current)
        if not below:
            break
        visited.add(tuple(sorted(below)))
        current = [
            child
            for key in current
            for child in ([child for child, _ in below[key]] if key in below else [key])
        ]
        levels = None if levels is None else levels - 1
    return current


def key_of_hit(conn: Conn, owner: str, hit: Recollection) -> int:
    """The key of a hit of recall.

    Raises:
        UnitNotFoundError: The message or summary no longer exists.
    """
    return _key_of(conn, owner, str(hit.node.message.id), hit.conversation_id or owner, hit.rank)


def _key_of(conn: Conn, owner: str, name: str, group: str | None, rank: int | None = None) -> int:
    if rank or (rank is None and group is None):
        summaries = unit_queries.by_keys(conn, owner, unit_queries.summaries_named(conn, owner, name))
        keys = [
            row.key
            for row in sorted(summaries, key=lambda row: -(row.rank or 0))
            if rank in (None, row.rank) and group in (None, row.session or owner)
        ]
        if keys:
            return keys[0]
    messages = [] if rank else unit_queries.messages_named(conn, owner, name, group or "")
    if not messages:
        raise UnitNotFoundError(
            f"no message or summary has the id {name!r}; pass the id of a message, a session or the owner"
        )
    if len(messages) > 1:
        raise InputError(
            f"{len(messages)} sessions have a message with the id {name!r}; "
            "name the session, or pass the MemoryUnit itself"
        )
    return messages[0]
