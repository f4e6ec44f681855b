"""The upkeep of the items of the store."""

from __future__ import annotations

from langchain_threadmem.langgraph.items import queries
from langchain_threadmem.maintenance.upkeep import Upkeep
from langchain_threadmem.storage.statements import Conn


class _ItemsUpkeep(Upkeep):
    subject = "the items of the store"

    def prune(self, conn: Conn, owner: str) -> dict[str, int]:
        """Remove the empty namespaces of an owner."""
        return {"namespace": queries.prune_all(conn, owner)}


UPKEEP = _ItemsUpkeep()
