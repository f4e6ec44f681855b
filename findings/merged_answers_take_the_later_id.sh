#!/usr/bin/env bash
# langchain-core 1.8.3 and langgraph 1.2.24: merge_message_runs, written back into a state.
#
# Guess: the merged message is the first of the run, with its id: the function is documented for any messages, and
# for messages of a person it is so. Written back with add_messages, it replaces the first message, and the rest of
# the run stays behind it until it is removed.
#
# What happens: answers are merged as chunks are added, so the id is the one that a provider has given, wherever it
# stands; an id that LangChain has given ("lc_run-...") to the first answer is lost. Written back, the merged answer
# replaces the second answer, the first one stays before it, and its words are in the prompt twice.
#
# Why it matters for chat memory: a store that follows ids takes the first answer for deleted, and the merged answer
# for an edit of the second. Which of the two happens depends on the model that wrote the first answer: two answers
# with ids of the provider keep the first id.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "langchain-core==1.8.3" "langgraph==1.2.24"
"$folder/venv/bin/python" - <<'PROGRAM'
import sys

from langchain_core.messages import AIMessage, HumanMessage, merge_message_runs
from langgraph.graph.message import add_messages

OWN, GIVEN = "lc_run--01-0", "msg_2"


def merged_id(kind: type, first: str) -> str:
    [merged] = merge_message_runs([kind("one", id=first), kind("two", id=GIVEN)])
    return merged.id


ids = [merged_id(HumanMessage, OWN), merged_id(AIMessage, OWN), merged_id(AIMessage, "msg_1")]
print("ids of merged messages:", ids)
state = [HumanMessage("question", id="h"), AIMessage("one", id=OWN), AIMessage("two", id=GIVEN)]
written = [(message.id, message.text) for message in add_messages(state, merge_message_runs(state))]
print("state with the merged messages written back:", written)
expected = [("h", "question"), (OWN, "one"), (GIVEN, "one\ntwo")]
sys.exit(ids != [OWN, GIVEN, "msg_1"] or written != expected)
PROGRAM
