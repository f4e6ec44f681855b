#!/usr/bin/env bash
# langchain-community 0.4.2 with rank-bm25 0.2.2, BM25Retriever over few messages.
#
# Guess: of two messages, a search by words returns the one that has the word.
#
# What happens: a word that stands in exactly half of the texts has the weight log(1) = 0. With two messages, of which
# one has the word, both have the score 0, and the retriever returns the last one, which has nothing to do with the
# query. The result does not say that its score is 0.
#
# Why it matters for chat memory: conversations begin with two messages, and the words of a topic stand in half of them
# for a long time. A search by words in one conversation needs weights that stay above 0 (Robertson and Spärck Jones
# with + 1, as in Lucene), or weights from more than the conversation.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "langchain-community==0.4.2" "rank-bm25==0.2.2"
"$folder/venv/bin/python" - <<'PROGRAM'
import sys

from langchain_community.retrievers import BM25Retriever

messages = ["figs grow in the south", "the printer is jammed again"]
two = BM25Retriever.from_texts(messages, k=1)
three = BM25Retriever.from_texts([*messages, "which stamp does a parcel need"], k=1)
for retriever in (two, three):
    print(retriever.invoke("figs")[0].page_content, list(retriever.vectorizer.get_scores(["figs"])))
wrong = two.invoke("figs")[0].page_content == messages[1] and not any(two.vectorizer.get_scores(["figs"]))
sys.exit(0 if wrong and three.invoke("figs")[0].page_content == messages[0] else 1)
PROGRAM
