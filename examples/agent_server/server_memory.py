"""The memory of the server: one system for all users, and the owner of each request."""

import os

from langgraph_api.utils import get_auth_ctx  # type: ignore[import-untyped]

from langchain_threadmem import MemorySystem
from langchain_threadmem.engine.owners import Run


def user_of_request(run: Run) -> str | None:
    """The identity of the user that the server has authenticated.

    Some calls of the server, such as `adelete_thread(thread_id)`, pass no configuration. The server names the
    user of each request and of each run in a context variable, which is also set for these calls.
    """
    request = get_auth_ctx()
    return run.user if request is None else request.user.identity


system = MemorySystem(
    os.environ.get("MEMORY_URL", "sqlite:///server.db"), owner=user_of_request, embeddings=False
)
