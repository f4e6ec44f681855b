#!/usr/bin/env bash
# langchain-google-genai 4.4.3, langchain-anthropic 1.7.10, langchain-aws 1.9.1 and langchain-mistralai 1.1.6 on
# langchain-core 1.8.3
#
# A memory puts a summary, or what it recalls, as a system message between old messages and the question. One would
# guess that each integration sends it there, or, where the provider has one place for instructions, sends it there;
# and that one without a system message before it is the simple case.
#
# What happens: the same two lists give four results. Mistral's integration sends the message where it stands.
# Bedrock's moves it to the instructions. Anthropic's does so if it is the only system message, and raises a
# ValueError if the list begins with another. Google's is the other way round: it adds the message to the
# instructions if the list begins with a system message, and otherwise leaves it out, without a warning.
#
# Why it matters for chat memory: with Gemini the summary of the whole conversation is not sent as soon as an agent
# has no system prompt. A list that works with one provider is refused by, or loses its memory at, another.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check "langchain-core==1.8.3" "langchain-google-genai==4.4.3" \
    "langchain-anthropic==1.7.10" "langchain-aws==1.9.1" "langchain-mistralai==1.1.6"
cat > middle.py <<'PY'
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from langchain_anthropic import ChatAnthropic
from langchain_aws import ChatBedrockConverse
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_mistralai import ChatMistralAI

bodies = []


class Recorder(BaseHTTPRequestHandler):
    """A server that keeps what is sent and has no answer."""

    def do_POST(self):
        bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(400)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *args):
        pass


server = HTTPServer(("127.0.0.1", 0), Recorder)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
models = {
    "Mistral": ChatMistralAI(endpoint=url, api_key="none", max_retries=0),
    "Bedrock": ChatBedrockConverse(
        model="anthropic.claude-3-5-sonnet-20240620-v1:0", region_name="us-east-1", endpoint_url=url,
        aws_access_key_id="none", aws_secret_access_key="none",
    ),
    "Anthropic": ChatAnthropic(model="claude-sonnet-4-5", api_key="none", base_url=url, max_retries=0),
    "Google": ChatGoogleGenerativeAI(
        model="gemini-2.5-flash", api_key="none", base_url=url, max_retries=0, vertexai=False
    ),
}
summary = "Summary of the conversation: allergic to nuts."
chat = [HumanMessage("Hello."), AIMessage("Hello!"), SystemMessage(summary), HumanMessage("Suggest a cake.")]


def place(model, messages):
    """Where the summary is in what a model's integration sends."""
    bodies.clear()
    try:
        model.invoke(messages)
    except Exception as error:
        if not bodies:
            return f"{type(error).__name__}: {error}"
    [body] = bodies[-1:]
    if summary not in json.dumps(body):
        return "left out"
    said = body["messages"] if "messages" in body else body["contents"]
    return "in its place" if summary in json.dumps(said) else "in the instructions"


seen = {
    name: [place(model, chat), place(model, [SystemMessage("You are a cook."), *chat])]
    for name, model in models.items()
}
for name, places in seen.items():
    print(f"{name}: alone {places[0]!r}; after a system prompt {places[1]!r}")
refused = "ValueError: Received multiple non-consecutive system messages."
expected = {
    "Mistral": ["in its place", "in its place"],
    "Bedrock": ["in the instructions", "in the instructions"],
    "Anthropic": ["in the instructions", refused],
    "Google": ["left out", "in the instructions"],
}
sys.exit(0 if seen == expected else 1)
PY
venv/bin/python -W ignore middle.py
