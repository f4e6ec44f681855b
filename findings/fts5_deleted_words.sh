#!/usr/bin/env bash
# SQLite 3.51.1 with FTS5 (pysqlite3-binary 0.5.4.post2)
#
# One would guess that a deleted message is out of the file after DELETE and VACUUM, at the latest with
# `PRAGMA secure_delete=ON`: VACUUM copies the rows that are left, and the full-text search finds the word no more.
#
# What happens: FTS5 keeps its words in segments, which are rows too. DELETE only adds a row that says the word is
# deleted, and VACUUM copies both rows. The word leaves the file when the segments are merged: by the command
# 'optimize', or at once with FTS5's own option 'secure-delete', which is off by default.
#
# Why it matters for chat memory: an erased conversation stays readable, word by word, in the file and in backups.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check "pysqlite3-binary==0.5.4.post2"
cat > check.py <<'PY'
from pathlib import Path

import pysqlite3 as sqlite3

SECRET = "heronword77"


def is_in_file(*commands: str) -> bool:
    file = Path("chat.db")
    file.unlink(missing_ok=True)
    connection = sqlite3.connect(str(file), isolation_level=None)
    connection.execute("PRAGMA secure_delete=ON")
    connection.execute("CREATE VIRTUAL TABLE messages USING fts5(text)")
    if "secure-delete" in commands:
        connection.execute("INSERT INTO messages(messages, rank) VALUES ('secure-delete', 1)")
    for text in ("Where do figs grow?", f"My code is {SECRET}.", "And how do I bake bread?"):
        connection.execute("INSERT INTO messages VALUES (?)", (text,))
    connection.execute("DELETE FROM messages WHERE messages MATCH ?", (SECRET,))
    found = connection.execute("SELECT count(*) FROM messages WHERE messages MATCH ?", (SECRET,)).fetchone()[0]
    assert found == 0, found
    if "optimize" in commands:
        connection.execute("INSERT INTO messages(messages) VALUES ('optimize')")
    connection.execute("VACUUM")
    connection.close()
    return SECRET.encode() in file.read_bytes()


print("SQLite", sqlite3.sqlite_version)
seen = {name: is_in_file(*name.split()) for name in ("DELETE", "optimize", "secure-delete")}
for name, left in seen.items():
    print(f"{name}, VACUUM: the deleted word is {'still' if left else 'not'} in the file")
raise SystemExit(seen != {"DELETE": True, "optimize": False, "secure-delete": False})
PY
venv/bin/python check.py
