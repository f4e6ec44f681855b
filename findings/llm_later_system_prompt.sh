#!/usr/bin/env bash
# llm 0.36 (the command line program and library "llm").
#
# Guess: since 0.32 the log is a tree of messages, so that each turn of a conversation can be read back as it was
# sent; a turn that was given another system prompt than the turns before it has this prompt in its chain.
#
# What happens: the chain of the later turn begins with the system prompt of the first turn. The new system prompt
# is in no row of the database: neither in the messages and parts, nor in the turn.
#
# Why it matters for chat memory: an importer that reads the tree shows an answer below instructions that it was not
# given, and nothing tells that other instructions existed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "llm==0.36"
LLM_USER_PATH="$folder" "$folder/venv/bin/python" - "$folder/logs.db" <<'PROGRAM'
import sqlite3
import sys

import llm
import sqlite_utils
from llm.logs import LogStore


class Echo(llm.Model):
    model_id = "echo"
    can_stream = False
    systems = []

    def execute(self, prompt, stream, response, conversation):
        self.systems.append(prompt.system)
        yield f"re: {prompt.prompt}"


path = sys.argv[1]
store = LogStore(sqlite_utils.Database(path))
conversation = Echo().conversation()
for question, system in (("Hello", "Answer briefly."), ("More", "Answer at length.")):
    response = conversation.prompt(question, system=system)
    response.text()
    store.log(response)

[thread] = [row["id"] for row in store.db["threads"].rows]
chain = [(message.role, message.parts[0].text) for message in store.thread_messages(thread)]
dump = "\n".join(sqlite3.connect(path).iterdump())
print("system prompts that the model was given:", Echo.systems)
print("chain of the thread:", chain)
print("'Answer at length.' is in the database:", "Answer at length." in dump)
as_seen = (
    Echo.systems == ["Answer briefly.", "Answer at length."]
    and chain[0] == ("system", "Answer briefly.")
    and [role for role, _ in chain] == ["system", "user", "assistant", "user", "assistant"]
    and "Answer at length." not in dump
)
sys.exit(0 if as_seen else 1)
PROGRAM
