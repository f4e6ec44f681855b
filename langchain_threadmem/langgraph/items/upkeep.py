"""The upkeep of the items of the store."""

from __future__ import annotations

from langchain_threadmem.langgraph.items import queries
from langchain_threadmem.maintenance.upkeep import Upkeep
from langchain_threadmem.storage.statements import Conn


class _ItemsUpkeep(Upkeep):
    subject, noun = "the items of the store", "store item"

    def unreadable(self, conn: Conn, owner: str, *, remove: bool) -> int:
        """The number of items whose value is no JSON, or is encrypted with another key."""
        ids = queries.unreadable(conn, owner)
        if remove:
            queries.remove_ids(conn, ids)
        return len(ids)

    def prune(self, conn: Conn, owner: str) -> dict[str, int]:
        """Remove the empty namespaces of an owner."""
        return {"namespace": queries.prune_all(conn, owner)}


UPKEEP = _ItemsUpkeep()
