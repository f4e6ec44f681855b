#!/usr/bin/env bash
# SQLite 3.51.1 (pysqlite3-binary 0.5.4.post2)
#
# One would guess that `PRAGMA secure_delete=ON` on every connection, from the creation of the file on, replaces
# VACUUM: SQLite documents that it "overwrites deleted content with zeros", so that a service that erases one
# conversation would not have to rewrite a file of all conversations.
#
# What happens: the deleted cells are overwritten where they are, but a B-tree has moved cells between its pages
# before, and copies that such a move left in the free space of a page are no deleted content. After the rows are
# deleted and the log is truncated, some of their texts are still in the file. Only VACUUM removes them.
#
# Why it matters for chat memory: messages with random ids are inserted in the middle of a B-tree, and answers grow
# while they are streamed, which moves cells all the time. An erasure without VACUUM gives no guarantee.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check "pysqlite3-binary==0.5.4.post2"
cat > check.py <<'PY'
import random
from pathlib import Path

import pysqlite3 as sqlite3

SECRET = "heronword77"


def left_in_file(seed: int, *, vacuum: bool) -> int:
    file, chance = Path("chat.db"), random.Random(seed)
    for suffix in ("", "-wal", "-shm"):
        file.with_name(f"{file.name}{suffix}").unlink(missing_ok=True)
    connection = sqlite3.connect(str(file), isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA secure_delete=ON")
    connection.execute("CREATE TABLE messages (id TEXT PRIMARY KEY, chat INTEGER, body TEXT) WITHOUT ROWID")
    for number in range(4000):
        id_, chat = f"{chance.getrandbits(64):016x}", number % 50
        part = f"{SECRET if chat == 7 else 'figs'} " * 10
        connection.execute("INSERT INTO messages VALUES (?, ?, '')", (id_, chat))
        for _ in range(chance.randrange(1, 8)):  # an answer that is streamed
            connection.execute("UPDATE messages SET body = body || ? WHERE id = ?", (part, id_))
    connection.execute("DELETE FROM messages WHERE chat = 7")
    if vacuum:
        connection.execute("VACUUM")
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert not busy
    connection.close()
    return file.read_bytes().count(SECRET.encode())


print("SQLite", sqlite3.sqlite_version)
seen = {vacuum: [left_in_file(seed, vacuum=vacuum) for seed in range(8)] for vacuum in (False, True)}
for vacuum, left in seen.items():
    print(f"secure_delete=ON{', VACUUM' if vacuum else ''}: {sum(left)} deleted words in eight files {left}")
raise SystemExit(not any(seen[False]) or any(seen[True]))
PY
venv/bin/python check.py
