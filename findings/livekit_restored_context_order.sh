#!/usr/bin/env bash
# livekit-agents 1.8.6, ChatContext.to_dict, from_dict and merge.
#
# Guess: a context that is saved with to_dict and restored with from_dict is the same context, so that another one can
# be merged with it as before.
#
# What happens: to_dict writes no times, and from_dict dates every item at the moment of restoring. merge sorts by time,
# so that all messages that were said before the restoring, also those after the stored ones, come first: before the
# oldest stored message, and before the instructions.
#
# Why it matters for chat memory: a call that is continued, or handed from one agent to another, is then stored and sent
# in an order in which nobody spoke; the order of an importer must come from the list and not from these times.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "livekit-agents==1.8.6"
"$folder/venv/bin/python" - <<'PROGRAM'
import sys

from livekit.agents.llm import ChatContext

MONDAY = 1_700_000_000.0
call = ChatContext.empty()
call.add_message(role="system", content="Be brief.", created_at=MONDAY)
call.add_message(role="user", content="My parcel is late.", created_at=MONDAY + 1)
call.add_message(role="assistant", content="I connect you.", created_at=MONDAY + 2)
colleague = ChatContext.empty()
colleague.add_message(role="assistant", content="It arrives tomorrow.", created_at=MONDAY + 3)


def texts(context):
    return [item.text_content for item in context.items]


restored = ChatContext.from_dict(call.to_dict())
same = texts(restored) == texts(call)
merged, merged_later = texts(call.copy().merge(colleague)), texts(restored.merge(colleague))
print("merged:                ", merged)
print("merged after restoring:", merged_later)
sys.exit(0 if same and merged[-1] == "It arrives tomorrow." == merged_later[0] else 1)
PROGRAM
