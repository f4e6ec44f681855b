#!/usr/bin/env bash
# langgraph-api 0.16.7 with langgraph-runtime-inmem 0.36.7 and langgraph-cli 0.4.40 (LangGraph's Agent Server)
#
# One would guess that `configurable["user_id"]` names the same user in all calls of a checkpointer for one
# authenticated user: in a run it is the user's `identity`.
#
# What happens: an update of a state (POST /threads/{id}/state) writes the user's `display_name` as `user_id`, and
# leaves `langgraph_auth_user` out.
#
# Why it matters for chat memory: a checkpointer or a store that keeps memories by `configurable["user_id"]` puts
# the corrected message into the memory of another "user", whom two people with one display name would share.
# Only the server's context variable of the request names the user of both calls.
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
from langgraph.graph import START, MessagesState, StateGraph

builder = StateGraph(MessagesState).add_node("answer", lambda _: {"messages": [("ai", "Hi!")]})
graph = builder.add_edge(START, "answer").compile()
PY
cat > saver.py <<'PY'
import contextlib
import json

from langgraph.checkpoint.memory import InMemorySaver


class Recording(InMemorySaver):
    async def aput(self, config, checkpoint, metadata, new_versions):
        fields = config["configurable"]
        user = fields.get("langgraph_auth_user")
        seen = [metadata["source"], fields.get("user_id"), user and user["identity"]]
        with open("seen.jsonl", "a") as file:
            file.write(json.dumps(seen) + "\n")
        return await super().aput(config, checkpoint, metadata, new_versions)


@contextlib.asynccontextmanager
async def saver():
    yield Recording()
PY
cat > auth.py <<'PY'
from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate(authorization: str | None) -> dict[str, str]:
    return {"identity": "user-17", "display_name": "Ada Lovelace"}
PY
cat > langgraph.json <<'JSON'
{"dependencies": ["."], "graphs": {"chat": "./graph.py:graph"},
 "checkpointer": {"path": "./saver.py:saver"}, "auth": {"path": "./auth.py:auth"}}
JSON
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
LANGGRAPH_CLI_NO_ANALYTICS=1 LANGSMITH_TRACING=false \
    venv/bin/langgraph dev --no-browser --no-reload --port "$port" > log 2>&1 &
server=$!
cat > use.py <<'PY'
import json
import sys
import time

import httpx
from langgraph_sdk import get_sync_client

url = f"http://127.0.0.1:{sys.argv[1]}"
for _ in range(240):
    try:
        if httpx.get(f"{url}/ok").is_success:
            break
    except httpx.TransportError:
        time.sleep(0.5)
client = get_sync_client(url=url, api_key=None, headers={"Authorization": "any"})
thread = client.threads.create()["thread_id"]
said = {"messages": [{"role": "user", "content": "Hello"}]}
client.runs.wait(thread, "chat", input=said)
client.threads.update_state(thread, said, as_node="answer")
seen = [json.loads(line) for line in open("seen.jsonl")]
print("source, configurable user_id, identity of langgraph_auth_user:")
print(*map(tuple, seen), sep="\n")
runs = {tuple(user) for source, *user in seen if source != "update"}
updates = {tuple(user) for source, *user in seen if source == "update"}
sys.exit(0 if runs == {("user-17", "user-17")} and updates == {("Ada Lovelace", None)} else 1)
PY
venv/bin/python use.py "$port"
