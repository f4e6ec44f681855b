"""The checkpointer and the store of the server, which `langgraph.json` names."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, get_checkpoint_metadata
from server_memory import system, user_of_request

from langchain_threadmem import ThreadMemSaver, ThreadMemStore
from langchain_threadmem.engine.owners import Run

store = ThreadMemStore(system)

MAX_RUNS = 10_000
"""Number of runs whose users are known."""


class ServerSaver(ThreadMemSaver):
    """A saver that knows the users of the latest runs.

    The server takes a run back (`multitask_strategy="rollback"`, `cancel(action="rollback")`) after it has
    left the context of the run: the call has a run id, and no user.
    """

    def __init__(self) -> None:
        super().__init__(system)
        self.users_of_runs: dict[str, str] = {}

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, and note the user of its run."""
        run_id, user = get_checkpoint_metadata(config, metadata).get("run_id"), user_of_request(Run(config))
        if run_id is not None and user is not None:
            self.users_of_runs[str(run_id)] = user
            while len(self.users_of_runs) > MAX_RUNS:
                self.users_of_runs.pop(next(iter(self.users_of_runs)), None)
        return await super().aput(config, checkpoint, metadata, new_versions)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Take runs back; a run that has stored nothing leaves nothing to remove."""
        for run_id in map(str, run_ids):
            user = user_of_request(Run()) or self.users_of_runs.get(run_id)
            if user is not None:
                await ThreadMemSaver(system.for_owner(user)).adelete_for_runs([run_id])


_saver = ServerSaver()


@asynccontextmanager
async def saver() -> AsyncIterator[ServerSaver]:
    """The checkpointer of all event loops of the server, which closes the system at its end."""
    async with system:
        yield _saver
