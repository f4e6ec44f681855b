#!/usr/bin/env bash
# chainlit 2.12.0 with its SQLAlchemy data layer (SQLAlchemy 2.1.9, aiosqlite 0.22.1)
#
# A chat stores what its tools did: each `cl.Step` is written to the data layer when it begins, and again when it ends,
# with its input and output. One would guess that the second write is the one that stays.
#
# What happens: both writes are tasks that nobody waits for, each an upsert of the whole row. The write of the beginning
# may be the last one, and then a step that has ended is stored without input and output, and no error is logged. Of
# forty steps that end at once, some lose their results in each run; of steps that take a tenth of a second, none.
#
# Why it matters for chat memory: a resumed chat, and whatever reads its database, has calls whose arguments and results
# are empty, most of them calls of the quickest tools, such as look-ups in a cache. An import cannot tell such a call
# from one that returned nothing.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check "chainlit==2.12.0" "sqlalchemy==2.1.9" "aiosqlite==0.22.1" \
    greenlet
cat > steps.py <<'PY'
import asyncio
import sqlite3
import sys

import chainlit.data
from chainlit.context import init_http_context
from chainlit.data.sql_alchemy import SQLAlchemyDataLayer
from chainlit.message import Message
from chainlit.step import Step
from chainlit.user import User

COLUMNS = {
    "users": 'id TEXT PRIMARY KEY, identifier TEXT UNIQUE, metadata TEXT, "createdAt" TEXT',
    "threads": 'id TEXT PRIMARY KEY, "createdAt" TEXT, name TEXT, "userId" TEXT, "userIdentifier" TEXT, tags TEXT, '
    "metadata TEXT",
    "steps": 'id TEXT PRIMARY KEY, name TEXT, type TEXT, "threadId" TEXT, "parentId" TEXT, streaming INTEGER, '
    '"waitForAnswer" INTEGER, "isError" INTEGER, metadata TEXT, tags TEXT, input TEXT, output TEXT, "createdAt" TEXT, '
    'command TEXT, modes TEXT, start TEXT, "end" TEXT, generation TEXT, "showInput" TEXT, language TEXT, '
    '"defaultOpen" INTEGER, "autoCollapse" INTEGER',
}
database = sqlite3.connect("chat.db")
for table, columns in COLUMNS.items():
    database.execute(f"CREATE TABLE {table} ({columns})")
database.commit()
layer = SQLAlchemyDataLayer(conninfo="sqlite+aiosqlite:///chat.db")
chainlit.data._data_layer, chainlit.data._data_layer_initialized = layer, True
THREAD = "11111111-1111-1111-1111-111111111111"


async def chat():
    user = await layer.create_user(User(identifier="ada"))
    init_http_context(thread_id=THREAD, user=user)
    await layer.update_thread(THREAD, name="Bread", user_id=user.id)
    await Message("Why is my bread flat?", type="user_message").send()
    await asyncio.sleep(0.5)
    for pause, name in ((0, "quick"), (0.1, "slow")):
        for number in range(40):
            async with Step(name=name, type="tool") as step:
                step.input = {"question": number}
                await asyncio.sleep(pause)
                step.output = f"result {number}"
            await asyncio.sleep(0.1)
    await asyncio.sleep(1)


asyncio.run(chat())
rows = database.execute("SELECT name, output FROM steps WHERE type = 'tool'").fetchall()
lost = {name: sum(one == name and not output for one, output in rows) for name in ("quick", "slow")}
print(len(rows), "steps stored; without a result:", lost)
sys.exit(0 if len(rows) == 80 and lost["quick"] > 0 == lost["slow"] else 1)
PY
venv/bin/python -W ignore steps.py 2> errors.log || { tail -3 errors.log; exit 1; }
