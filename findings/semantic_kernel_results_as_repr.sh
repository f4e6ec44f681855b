#!/usr/bin/env bash
# semantic-kernel 1.45.0 (Python): ChatHistory.serialize and restore_chat_history.
#
# Guess: a history that is serialized and restored is the same history; a result of a tool that is an object is JSON
# in the document, and an object again afterwards.
#
# What happens: the arguments of a call stay an object, but the result of the call is written as the text of Python's
# repr, with single quotes, None and True. It is no JSON, and stays a text when the history is restored.
#
# Why it matters for chat memory: an importer that reads results as JSON fails on them, and after a restart the model
# is shown another text of the same result than before.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "semantic-kernel==1.45.0"
"$folder/venv/bin/python" - <<'PROGRAM'
import json
import sys

from semantic_kernel.contents import ChatHistory, ChatMessageContent, FunctionCallContent, FunctionResultContent

call = FunctionCallContent(id="c1", name="garden-look", arguments={"plant": "fig"})
result = FunctionResultContent(id="c1", name="garden-look", result={"ripe": True, "weight": None})
history = ChatHistory()
history.add_message(ChatMessageContent(role="assistant", items=[call]))
history.add_message(ChatMessageContent(role="tool", items=[result]))
text = history.serialize()
written = json.loads(text)["messages"][1]["items"][0]["result"]
restored = ChatHistory.restore_chat_history(text)
again = restored.messages[1].items[0].result
print("arguments in the document:", json.loads(text)["messages"][0]["items"][0]["arguments"])
print("result in the document:", repr(written))
print("result after restoring:", type(again).__name__, repr(again))
try:
    json.loads(written)
    is_json = True
except ValueError:
    is_json = False
sys.exit(0 if written == "{'ripe': True, 'weight': None}" and not is_json and isinstance(again, str) else 1)
PROGRAM
