"""The commands `demo` and `mcp`."""

from __future__ import annotations

import argparse
from pathlib import Path

from langchain_threadmem.cli.arguments import Commands, add_command, open_memory


def register(commands: Commands) -> None:
    demo = add_command(
        commands,
        "demo",
        _demo,
        "sort a conversation into threads and show the result",
        examples=["demo", "demo chat.jsonl --out demo-output"],
        database=None,
    )
    demo.add_argument(
        "file", metavar="FILE", nargs="?", type=Path, help="JSON or JSON Lines; default: a sample"
    )
    demo.add_argument(
        "--index", metavar="N", type=int, default=0, help="position of the conversation in FILE, from 0"
    )
    demo.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("demo-output"), help="output; default: demo-output"
    )
    demo.add_argument(
        "--db",
        "--database",
        dest="database_url",
        metavar="DATABASE",
        help="database for the conversation: a file or a URL; default: memory.db in DIR",
    )

    server = add_command(
        commands,
        "mcp",
        _mcp,
        "serve the memory to other programs: a server of the Model Context Protocol over stdio",
        examples=["mcp --db sqlite:///memory.db --owner ada", "mcp memory.db --write"],
        database="argument",
    )
    server.add_argument(
        "--write",
        action="store_true",
        help="also offer the tools remember and forget, and create a database that does not exist; "
        "default: open the database read-only",
    )


def _demo(options: argparse.Namespace) -> None:
    from langchain_threadmem.cli.demo import demo

    demo(options.file, options.index, options.out, options.database_url, options.owner)


def _mcp(options: argparse.Namespace) -> None:
    from langchain_threadmem.cli import mcp_server
    from langchain_threadmem.memory_system import MemorySystem

    mcp_server.check_installed()
    opened = (
        MemorySystem(options.db, owner=options.owner)
        if options.write
        else open_memory(options, read_only=True)
    )
    with opened as system:
        mcp_server.serve(system, write=options.write)
