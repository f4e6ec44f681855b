#!/usr/bin/env bash
# langchain-mistralai 1.1.6 on langchain-core 1.8.3
#
# Models say something before they call a tool: "You said that you eat no nuts, so I look for another cake."
# One would guess that the text of such an answer is part of the history that the next call sends.
#
# ChatMistralAI sends the tool calls of an answer and, in the place of its text, an empty text. Without calls
# the text is sent.
#
# For chat memory: what the assistant has said beside a call is stored, counted by a token window and shown to
# other providers, yet a Mistral model never reads it.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q langchain-core==1.8.3 langchain-mistralai==1.1.6
"$folder/venv/bin/python" - <<'PYTHON'
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_mistralai import ChatMistralAI

bodies = []


class Recorder(BaseHTTPRequestHandler):
    def do_POST(self):
        bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(400)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *args):
        pass


server = HTTPServer(("127.0.0.1", 0), Recorder)
threading.Thread(target=server.serve_forever, daemon=True).start()
text = "You said that you eat no nuts, so I look for another cake."
call = {"name": "search", "args": {"query": "cake"}, "id": "abcdefghi"}
history = [
    HumanMessage("Find me a cake."),
    AIMessage(text, tool_calls=[call]),
    ToolMessage("lemon cake", tool_call_id="abcdefghi"),
    AIMessage("A lemon cake."),
    HumanMessage("Why that one?"),
]
model = ChatMistralAI(endpoint=f"http://127.0.0.1:{server.server_port}", api_key="none", max_retries=0)
try:
    model.invoke(history)
except Exception:
    pass
sent = bodies[-1]["messages"]
for message in sent:
    print(message["role"], repr(message.get("content")), [c["function"] for c in message.get("tool_calls") or ()])
assert sent[1]["tool_calls"] and sent[1]["content"] == ""
assert text not in json.dumps(sent)
assert sent[3]["content"] == "A lemon cake."
PYTHON
