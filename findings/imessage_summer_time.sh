#!/usr/bin/env bash
# langchain-community 0.4.2 (IMessageChatLoader)
#
# One would guess that `message_time_as_datetime` is the local time at which the message was sent, or its time in
# UTC: it is computed with datetime.fromtimestamp, from the nanoseconds since 2001 of Apple's database.
#
# What happens: the start of 2001 is taken in local time, with the offset of January, and the result is written
# with the offset of the message's own day. So in a zone with daylight saving time the value is UTC for a message
# of the winter, and an hour ahead of UTC, an hour behind the local time, for a message of the summer.
#
# Why it matters for chat memory: two messages of one hour around the change of the clocks are in the wrong
# order, and every message of a summer is dated an hour off. `message_time`, in nanoseconds since 2001 in UTC, is
# right, and is no number of seconds since 1970.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check "langchain-community==0.4.2" "langchain-core==1.8.3"

cat > load.py <<'PY'
import sqlite3
from datetime import datetime, timedelta, timezone

from langchain_community.chat_loaders.imessage import IMessageChatLoader

SENT = {"winter": datetime(2024, 1, 15, 12, tzinfo=timezone.utc), "summer": datetime(2024, 7, 15, 12, tzinfo=timezone.utc)}
APPLE = datetime(2001, 1, 1, tzinfo=timezone.utc)

database = sqlite3.connect("chat.db")
database.executescript(
    """
    CREATE TABLE chat (ROWID INTEGER PRIMARY KEY, guid TEXT);
    CREATE TABLE handle (ROWID INTEGER PRIMARY KEY, id TEXT);
    CREATE TABLE message (
        ROWID INTEGER PRIMARY KEY, date INTEGER, text TEXT, is_from_me INTEGER, attributedBody BLOB, handle_id INTEGER
    );
    CREATE TABLE chat_message_join (chat_id INTEGER, message_id INTEGER);
    INSERT INTO chat VALUES (1, 'a');
    INSERT INTO handle VALUES (1, 'ada@example.org');
    """
)
for number, (text, sent) in enumerate(SENT.items(), 1):
    nanoseconds = (sent - APPLE) // timedelta(microseconds=1) * 1000
    database.execute("INSERT INTO message VALUES (?, ?, ?, 0, NULL, 1)", (number, nanoseconds, text))
    database.execute("INSERT INTO chat_message_join VALUES (1, ?)", (number,))
database.commit()
database.close()

[session] = IMessageChatLoader("chat.db").lazy_load()
hours = {}
for message in session["messages"]:
    given = message.additional_kwargs
    sent, shown = SENT[message.content], given["message_time_as_datetime"]
    assert APPLE + timedelta(microseconds=given["message_time"] // 1000) == sent
    hours[message.content] = (shown - sent.replace(tzinfo=None)).total_seconds() / 3600
    print(f"{message.content}: sent {sent:%H:%M} UTC, {sent.astimezone():%H:%M} local, shown {shown:%H:%M}")
assert hours == {"winter": 0, "summer": 1}, hours
PY
TZ=Europe/Berlin venv/bin/python load.py
