#!/usr/bin/env bash
# langchain-core 1.8.3 (cache of answers), langgraph 1.2.24 (reducer add_messages), InMemorySaver
#
# A chat shows its model the newest message alone, as a memory does that cuts or selects the history. The same
# question is asked twice, with LangChain's cache of answers. One would guess that the state ends with the
# answer: question, answer, question, answer.
#
# The cache returns the message of the first answer with its id, and adds the cost 0 to its usage.
# `add_messages` takes the second answer for a new version of the first one and puts it in the first one's
# place. The state ends with the question, and the answer that was paid for has the cost 0.
#
# For chat memory: the last answer is in no list and in no checkpoint, an agent that looks at the last message
# finds a question, and a store that compares contents sees an edit of an old answer.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q langchain-core==1.8.3 langgraph==1.2.24
"$folder/venv/bin/python" - <<'PYTHON'
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

set_llm_cache(InMemoryCache())
usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
answers = (AIMessage(f"answer {n}", usage_metadata=usage) for n in range(9))
model = GenericFakeChatModel(messages=answers)
builder = StateGraph(MessagesState)
builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"][-1:])]})
builder.add_edge(START, "model")
chat = builder.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "1"}}
for _ in range(2):
    state = chat.invoke({"messages": [("user", "What time is it?")]}, config)
seen = [(message.type, message.text) for message in state["messages"]]
print(seen)
print("usage of the first answer now:", state["messages"][1].usage_metadata)
assert seen == [("human", "What time is it?"), ("ai", "answer 0"), ("human", "What time is it?")]
assert state["messages"][1].usage_metadata["total_cost"] == 0
PYTHON
