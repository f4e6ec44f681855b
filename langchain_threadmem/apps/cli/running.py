"""The commands `demo` and `mcp`."""

from __future__ import annotations

from pathlib import Path

import click

from langchain_threadmem.apps.cli.arguments import OWNER, PATH, Access, command


@command("demo", examples=["demo", "demo chat.jsonl --out demo-output"], database=None)
@click.argument("file", type=PATH, required=False)
@click.option("--index", metavar="N", type=int, default=0, help="Position of the conversation in FILE.")
@click.option("--out", metavar="DIR", type=PATH, default="demo-output", help="The folder of the output.")
@click.option(
    "--db",
    "--database",
    "database",
    metavar="DATABASE",
    help="The database for the conversation: a file or a URL.  [default: memory.db in DIR]",
)
def demo(file: Path | None, index: int, out: Path, database: str | None, owner: str) -> None:
    """Sort a conversation into threads and show the result.

    FILE is JSON or JSON Lines; by default a sample is sorted.
    """
    from langchain_threadmem.apps.cli.demo import demo

    demo(file, index, out, database, owner)


@command(
    "mcp", examples=["mcp --db sqlite:///memory.db --owner ada", "mcp memory.db --write"], database="argument"
)
@click.option(
    "--write",
    is_flag=True,
    help="Also offer the tools remember and forget, and create a database that does not exist; by default, "
    "the database is opened read-only.",
)
def mcp(access: Access, write: bool) -> None:
    """Serve the memory to other programs, by MCP over stdio."""
    from langchain_threadmem.apps.cli import mcp_server
    from langchain_threadmem.memory_system import MemorySystem

    mcp_server.check_installed()
    owner = access.owner or OWNER
    with MemorySystem(access.db, owner=owner) if write else access.open(read_only=True) as system:
        mcp_server.serve(system, write=write)
