#!/usr/bin/env bash
# openai-agents 0.24.0, AdvancedSQLiteSession (sessions with branches in SQLite).
#
# Guess: the database says which branch of a conversation is the current one, so that a session that is opened again,
# or an importer, goes on where the person was.
#
# What happens: the current branch is an attribute of the Python object. No table has it. A session that is opened
# again is in "main", and what is added then goes there; the items of the branch that was in use are not returned.
#
# Why it matters for chat memory: after a restart the model reads another thread than the person sees, and an importer
# cannot find the active thread in the file.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "openai-agents==0.24.0"
"$folder/venv/bin/python" - "$folder/sessions.db" <<'PROGRAM'
import asyncio
import sqlite3
import sys

from agents.extensions.memory import AdvancedSQLiteSession


def said(role, text):
    return {"role": role, "content": text}


async def main(path):
    session = AdvancedSQLiteSession(session_id="tea", db_path=path, create_tables=True)
    await session.add_items([said("user", "Which tea?"), said("assistant", "Assam.")])
    await session.add_items([said("user", "Why?"), said("assistant", "It is strong.")])
    branch = await session.create_branch_from_turn(2, "another")
    await session.add_items([said("user", "How long?"), said("assistant", "Three minutes.")])
    before = [item["content"] for item in await session.get_items()]
    session.close()

    again = AdvancedSQLiteSession(session_id="tea", db_path=path)
    after = [item["content"] for item in await again.get_items()]
    again.close()
    tables = sqlite3.connect(path)
    columns = {
        row[0]: [column[1] for column in tables.execute(f"PRAGMA table_info({row[0]})")]
        for row in tables.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    naming = [f"{table}.{column}" for table, found in columns.items() for column in found if "current" in column]
    print("in the branch", branch, "before closing:", before)
    print("after opening again:", after)
    print("columns that could name the current branch:", naming)
    return before[-1] == "Three minutes." and after[-1] == "It is strong." and not naming


sys.exit(0 if asyncio.run(main(sys.argv[1])) else 1)
PROGRAM
