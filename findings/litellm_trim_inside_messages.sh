#!/usr/bin/env bash
# litellm 1.110.2: `litellm.utils.trim_messages`
#
# One would guess that a history that is too long for a model loses its oldest messages, as whole messages, and that a
# call of a tool and its result stay together.
#
# What happens: the oldest message that does not fit is kept, and the middle of its text is replaced by "..". What
# the person has said then means something else: of "ask me. ... Never delete the folder" remains "ask..delete the
# folder". A result stays without its call, which OpenAI and others refuse, unless it is the last message.
#
# Why it matters for chat memory: the model reads, as the person's own words, an instruction that nobody has given.
# Nothing marks the cut but two dots, and the stored history does not show it.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check "litellm==1.110.2"
cat > trim.py <<'PY'
from litellm.utils import trim_messages

wish = (
    "Before you delete anything from the archive, ask me. You may tidy up the inbox, sort the mails of this week "
    "and answer the easy ones. Never delete the folder with the contracts, I need it."
)
chat = [
    {"role": "user", "content": wish},
    {"role": "assistant", "content": "I will ask before I delete anything."},
    {"role": "user", "content": "Tidy up now."},
]
cut = trim_messages(chat, model="gpt-4o", max_tokens=52, trim_ratio=1)
print(*(f"{message['role']}: {message['content']}" for message in cut), sep="\n")
assert [message["role"] for message in cut] == ["user", "assistant", "user"]
assert "ask..delete the folder with the contracts" in cut[0]["content"]

call = {"id": "c1", "type": "function", "function": {"name": "book_a_table", "arguments": '{"people": 2}'}}
tools = [
    {"role": "user", "content": "Book a table for two please, near the river if possible."},
    {"role": "assistant", "content": "I look for a table near the river.", "tool_calls": [call]},
    {"role": "tool", "tool_call_id": "c1", "content": "booked"},
    {"role": "assistant", "content": "Done, your table is booked."},
    {"role": "user", "content": "Thanks! And a taxi?"},
]
cut = trim_messages(tools, model="gpt-4o", max_tokens=36, trim_ratio=1)
print(*(f"{message['role']}: {message['content']}" for message in cut), sep="\n")
assert [message["role"] for message in cut] == ["tool", "assistant", "user"]
PY
LITELLM_LOCAL_MODEL_COST_MAP=True venv/bin/python -W ignore trim.py
