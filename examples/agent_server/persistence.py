"""The checkpointer and the store of the server, which `langgraph.json` names."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from server_memory import system, user_of_request

from langchain_threadmem import ThreadMemSaver, ThreadMemStore
from langchain_threadmem.checkpoints.queries import owners_of_run
from langchain_threadmem.engine.owners import Run

log = logging.getLogger(__name__)
store = ThreadMemStore(system)


class ServerSaver(ThreadMemSaver):
    """A saver that rolls back runs outside of the context of a user.

    The server rolls back a run (`multitask_strategy="rollback"`, `cancel(action="rollback")`) after it has
    left the context of the run, so the call has a run id and no user. The stored checkpoints name the user.
    """

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Roll back runs; a run without a stored checkpoint has no data to remove."""
        for run_id in map(str, run_ids):
            user = user_of_request(Run())
            users = [user] if user is not None else await self._users_of(run_id)
            if not users:
                log.info("run %s is rolled back; it has stored no checkpoint", run_id)
            for name in users:
                await ThreadMemSaver(system.for_owner(name)).adelete_for_runs([run_id])

    async def _users_of(self, run_id: str) -> list[str]:
        return await system.resources.database.aread(lambda conn: owners_of_run(conn, run_id))


_saver = ServerSaver(system)


@asynccontextmanager
async def saver() -> AsyncIterator[ServerSaver]:
    """The checkpointer of all event loops of the server, which closes the system at its end."""
    async with system:
        yield _saver
