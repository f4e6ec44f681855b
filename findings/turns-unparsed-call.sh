#!/usr/bin/env bash
# langchain-anthropic 1.7.10, langchain-google-genai 4.4.3, langchain-openai 1.7.3 on langchain-core 1.8.3
#
# A model's answer was cut in the middle of the arguments of a tool call. LangChain keeps the call in
# `invalid_tool_calls`, so one would guess that a history with this answer is sent alike to each provider:
# either with the broken arguments, or without the call.
#
# Each integration sends something else. OpenAI's sends the broken arguments. Google's omits the call.
# Anthropic's sends a whole call with the arguments `{}`, which no model has made: "delete files" without
# any limit.
#
# For chat memory: whether a stored list needs a result for the call depends on the provider, and after a
# change of the provider the history says that the tool was called without arguments.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q langchain-core==1.8.3 langchain-anthropic==1.7.10 \
  langchain-openai==1.7.3 langchain-google-genai==4.4.3
"$folder/venv/bin/python" - <<'PYTHON'
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, HumanMessage
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI

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
url = f"http://127.0.0.1:{server.server_port}"
cut = {
    "type": "invalid_tool_call",
    "name": "delete_files",
    "args": '{"older_than_days": 7, "fol',
    "id": "c1",
    "error": "cut off",
}
history = [
    HumanMessage("Clean up."),
    AIMessage("I delete the old files.", invalid_tool_calls=[cut]),
    HumanMessage("What did you do?"),
]


def sent(model):
    try:
        model.invoke(history)
    except Exception:
        pass
    return json.dumps(bodies[-1].get("messages") or bodies[-1]["contents"])


openai = sent(ChatOpenAI(model="gpt-4o-mini", base_url=url, api_key="none", max_retries=0))
anthropic = sent(ChatAnthropic(model="claude-sonnet-4-5", base_url=url, api_key="none", max_retries=0))
google = sent(ChatGoogleGenerativeAI(model="gemini-2.5-flash", base_url=url, api_key="none", max_retries=1))
print("openai   ", openai)
print("anthropic", anthropic)
print("google   ", google)
assert "older_than_days" in openai
assert "older_than_days" not in anthropic and '"name": "delete_files", "input": {}' in anthropic
assert "delete_files" not in google
PYTHON
