#!/usr/bin/env bash
# chromadb 1.5.9, and langchain-chroma 1.1.0 on it
#
# One would guess that `upsert` with an id that exists writes the record that is given: new text, new vector, new
# metadata. LangChain's `add_documents` with the id of an earlier document replaces that document.
#
# What happens: text and vector are replaced, and metadata is merged: each key of the old record that the new one
# does not have stays. A key goes only if the new metadata has it with the value None.
#
# Why it matters for chat memory: a memory that was marked as superseded, archived or private, and is then written
# again with fresh metadata, keeps the mark: filters leave the new text out for ever. The reverse, an old source or
# owner beside a new text, is shown as if it belonged to it.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check "chromadb==1.5.9" "langchain-chroma==1.1.0"
cat > upsert.py <<'PY'
import sys

import chromadb
from chromadb.config import Settings
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding

client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
store = Chroma("memories", embedding_function=DeterministicFakeEmbedding(size=8), client=client)
old = {"superseded": True, "source": "chat of May"}
store.add_documents([Document("My office is in Rome.", metadata=old, id="office")])
store.add_documents([Document("My office is in Oslo.", metadata={"source": "chat of June"}, id="office")])
kept = store.get(ids=["office"])
print("written again:", kept["documents"], kept["metadatas"])
found = store.similarity_search("Where is my office?", filter={"superseded": {"$ne": True}})
print("found without what is superseded:", found)

collection = client.get_collection("memories")
collection.upsert(ids=["office"], embeddings=[[1.0] * 8], metadatas=[{"superseded": None}])
cleared = collection.get(ids=["office"])
print("after None:", cleared["documents"], cleared["metadatas"])
seen = (kept["documents"], kept["metadatas"], found, cleared["metadatas"])
expected = (
    ["My office is in Oslo."],
    [{"superseded": True, "source": "chat of June"}],
    [],
    [{"source": "chat of June"}],
)
sys.exit(0 if seen == expected else 1)
PY
venv/bin/python -W ignore upsert.py
