#!/usr/bin/env bash
# langchain-classic 1.0.8 with langchain-community 0.4.2 (SQLChatMessageHistory)
#
# ConversationTokenBufferMemory and ConversationSummaryBufferMemory keep a conversation below `max_token_limit`. One
# would guess that they do so with each history that can be passed as `chat_memory`: either the stored history is cut,
# or only what is loaded.
#
# What happens: they remove messages from the list that `chat_memory.messages` returns. Of a history in memory this is
# the history itself. Of a history in a database it is a copy: the stored messages stay, and all of them are loaded,
# however low the limit. The summarising memory asks its model at each turn for a summary of all old messages again, on
# top of the summary that has them, and then loads the summary beside the messages that it covers.
#
# Why it matters for chat memory: a program that works in memory exceeds the context of its model, and pays for a
# growing summary at each turn, when its history moves to a database.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check "langchain-core==1.8.3" "langchain-classic==1.0.8" "langchain-community==0.4.2" greenlet
cat > limits.py <<'PY'
import sys

from langchain_classic.memory import ConversationSummaryBufferMemory, ConversationTokenBufferMemory
from langchain_community.chat_message_histories import SQLChatMessageHistory
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.language_models import FakeListChatModel

asked = []


class Model(FakeListChatModel):
    """Counts words as tokens, and answers with the number of its call."""

    def get_num_tokens_from_messages(self, messages, tools=None):
        return sum(len(message.text.split()) for message in messages)

    def _call(self, messages, *args, **kwargs):
        asked.append(messages[-1].text)
        return f"summary {len(asked)}"


def loaded(kind, history):
    """The texts that a memory with a limit of 20 words loads after ten turns of eight words."""
    asked.clear()
    memory = kind(llm=Model(responses=["-"]), chat_memory=history, max_token_limit=20, return_messages=True)
    for turn in range(10):
        memory.save_context({"input": f"question number {turn} please"}, {"output": f"answer number {turn} indeed"})
    return [message.text for message in memory.load_memory_variables({})["history"]]


seen = {}
for kind in (ConversationTokenBufferMemory, ConversationSummaryBufferMemory):
    for history in (InMemoryChatMessageHistory(), SQLChatMessageHistory(kind.__name__, connection="sqlite:///chat.db")):
        texts = loaded(kind, history)
        first_turn_asked = sum("Human: question number 0 please" in prompt for prompt in asked)
        seen[kind.__name__, type(history).__name__] = (len(texts), first_turn_asked)
        print(kind.__name__, "with", type(history).__name__, "loads", len(texts), "messages:", texts[:3], "...")
        print("    calls of the model:", len(asked), "of which with the first question:", first_turn_asked)
expected = {
    ("ConversationTokenBufferMemory", "InMemoryChatMessageHistory"): (5, 0),
    ("ConversationTokenBufferMemory", "SQLChatMessageHistory"): (20, 0),
    ("ConversationSummaryBufferMemory", "InMemoryChatMessageHistory"): (6, 1),
    ("ConversationSummaryBufferMemory", "SQLChatMessageHistory"): (21, 8),
}
sys.exit(0 if seen == expected else 1)
PY
venv/bin/python -W ignore limits.py
