#!/usr/bin/env bash
# langgraph-api 0.16.7 with langgraph-runtime-inmem 0.36.7 and langgraph-cli 0.4.40 (LangGraph's Agent Server)
#
# An assistant is a graph with a configuration, and one thread may be continued by several assistants. One would
# guess that each run has the configuration of the assistant that it names.
#
# What happens: the first run copies the assistant's `configurable` to the thread, and the thread's values win
# over those of every later assistant. A thread that was begun by a formal assistant is continued formally when the
# run names the brief one, and also by the graph's own assistant, which has no configuration. The same holds for
# `context`. A run that sends the value itself is obeyed, for this run alone.
#
# Why it matters for chat memory: the system prompt, the owner or the namespace of a memory is often such a value.
# Whoever hands a conversation from one assistant to another goes on with the memory of the first.
set -eu
work=$(mktemp -d)
server=
clean() { if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; fi; rm -rf "$work"; }
trap clean EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check "langgraph-cli[inmem]==0.4.40" "langgraph-api==0.16.7" \
    "langgraph-runtime-inmem==0.36.7" "langgraph==1.2.24" "langgraph-checkpoint==4.3.2" "langgraph-sdk==0.4.14"

cat > graph.py <<'PY'
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph


def answer(state: MessagesState, config: RunnableConfig):
    return {"messages": [("ai", config["configurable"].get("style", "none"))]}


graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").compile()
PY
echo '{"dependencies": ["."], "graphs": {"chat": "./graph.py:graph"}}' > langgraph.json
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
LANGGRAPH_CLI_NO_ANALYTICS=1 LANGSMITH_TRACING=false \
    venv/bin/langgraph dev --no-browser --no-reload --port "$port" > log 2>&1 &
server=$!
cat > use.py <<'PY'
import sys
import time

import httpx
from langgraph_sdk import get_sync_client

url = sys.argv[1]
for _ in range(240):
    try:
        if httpx.get(f"{url}/ok").is_success:
            break
    except httpx.TransportError:
        time.sleep(0.5)
client = get_sync_client(url=url, api_key=None)


def assistant(**options: dict[str, object]) -> str:
    return client.assistants.create("chat", **options)["assistant_id"]


def styles(*runs: tuple[str, dict[str, object]]) -> list[str]:
    thread = client.threads.create()["thread_id"]
    given = {"messages": [{"role": "user", "content": "Hello"}]}
    states = [client.runs.wait(thread, name, input=given, **options) for name, options in runs]
    return [state["messages"][-1]["content"] for state in states]


formal, brief = (assistant(config={"configurable": {"style": style}}) for style in ("formal", "brief"))
friendly = assistant(context={"style": "friendly"})
own = {"config": {"configurable": {"style": "of the run"}}}
found = styles((formal, {}), (brief, {}), ("chat", {}), (brief, own), (brief, {})), styles((friendly, {}), (brief, {}))
print(*found, sep="\n")
assert found == (["formal", "formal", "formal", "of the run", "formal"], ["friendly", "friendly"]), found
PY
venv/bin/python use.py "http://127.0.0.1:$port"
