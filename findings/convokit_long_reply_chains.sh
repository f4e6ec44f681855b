#!/usr/bin/env bash
# convokit 5.0.0, Conversation.traverse.
#
# Guess: a conversation in which each utterance replies to the one before is the simplest tree there is; the orders of
# traversal differ in their order only.
#
# What happens: "preorder" and "postorder" descend by recursion, one level for each reply. At 1,500 replies they raise
# RecursionError, while "bfs", "dfs" and the paths from the root to the leaves return all utterances.
#
# Why it matters for chat memory: forum threads, for which the library was made, are wide and shallow; a chat is a
# chain, and one of a year has thousands of levels. Code for trees of conversations must not recurse by level.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export HOME="$folder"
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "convokit==5.0.0"
"$folder/venv/bin/python" - <<'PROGRAM' 2>&1 | tee "$folder/seen"
from convokit import Corpus, Speaker, Utterance

speaker = Speaker(id="ada")


def conversation(length):
    utterances = [
        Utterance(
            id=f"u{i}",
            speaker=speaker,
            conversation_id="u0",
            reply_to=f"u{i - 1}" if i else None,
            timestamp=i,
            text=f"message {i}",
        )
        for i in range(length)
    ]
    return Corpus(utterances=utterances).get_conversation("u0")


for length in (300, 1500):
    chain = conversation(length)
    for order in ("bfs", "dfs", "preorder", "postorder"):
        try:
            seen = len(list(chain.traverse(order)))
        except RecursionError:
            seen = "RecursionError"
        print(length, order, seen)
    print(length, "paths", [len(path) for path in chain.get_root_to_leaf_paths()])
PROGRAM
for order in bfs dfs preorder postorder; do grep -q "^300 $order 300$" "$folder/seen"; done
for order in bfs dfs; do grep -q "^1500 $order 1500$" "$folder/seen"; done
for order in preorder postorder; do grep -q "^1500 $order RecursionError$" "$folder/seen"; done
grep -q "^1500 paths \[1500\]$" "$folder/seen"
