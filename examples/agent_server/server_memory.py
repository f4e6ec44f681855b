"""The memory of the server: one system for all users, whose owner is the user of each run and request."""

import os

from langchain_threadmem import MemorySystem

system = MemorySystem(
    os.environ.get("MEMORY_URL", "sqlite:///server.db"), owner=lambda run: run.user, embeddings=False
)
