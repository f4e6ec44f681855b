#!/usr/bin/env bash
# mem0ai 2.2.1 (the open source library, with Qdrant on disk)
#
# One would guess that after `delete_all(user_id=...)`, or after each memory of a user was deleted by its id, nothing
# that the user said is used any more: no memory is found, and the next call begins with an empty memory.
#
# What happens: `add` also keeps the last ten messages of a user as they were said, in the table `messages` of its
# history database, and shows them to the model that extracts memories from the next message. Neither `delete` nor
# `delete_all` removes them. So the deleted text is sent to the model again, which may store it again as a memory.
# The table `history` has the text of each deleted memory too. Only `reset`, for all users, empties both.
#
# Why it matters for chat memory: "forget my diagnosis" is confirmed, search finds nothing, and the diagnosis is in the
# next prompt to the provider.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check "mem0ai==2.2.1"
cat > forget.py <<'PY'
import json
import sys

from mem0 import Memory

prompts = []


class Model:
    """Extracts the diagnosis from what it is shown, and keeps the prompts."""

    def generate_response(self, messages, **options):
        prompts.append(messages[-1]["content"])
        facts = [{"text": "User has measles"}] if "measles" in prompts[-1] else []
        return json.dumps({"memory": facts})


class Embedder:
    config = None

    def embed(self, text, memory_action=None):
        return [float(byte % 7) + 0.1 for byte in (text.encode() + b"abcdefgh")[:8]]

    def embed_batch(self, texts, memory_action=None):
        return [self.embed(text) for text in texts]


store = {"provider": "qdrant", "config": {"path": "qdrant", "embedding_model_dims": 8, "on_disk": True}}
memory = Memory.from_config({"vector_store": store, "history_db_path": "history.db"})
memory.llm, memory.embedding_model = Model(), Embedder()


def stored():
    return [found["memory"] for found in memory.get_all(filters={"user_id": "ada"})["results"]]


memory.add("The doctor says that it is measles.", user_id="ada")
before = stored()
memory.delete_all(user_id="ada")
deleted = stored()
memory.add("What is the weather like?", user_id="ada")
again = stored()
shown = "The doctor says that it is measles." in prompts[-1]
print("stored:", before, "- after delete_all:", deleted, "- after a question about the weather:", again)
print("the last prompt has the deleted message:", shown)
memory.vector_store.client.close()
sys.exit(0 if (before, deleted, again, shown) == (["User has measles"], [], ["User has measles"], True) else 1)
PY
MEM0_TELEMETRY=False MEM0_DIR="$work/mem0" OPENAI_API_KEY=none venv/bin/python -W ignore forget.py
