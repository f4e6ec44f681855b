#!/usr/bin/env bash
# langchain-ollama 1.1.0, langchain-aws 1.9.1, langchain-google-genai 4.4.3 and langchain-openai 1.7.4 on
# langchain-core 1.8.3
#
# A conversation begins with a model that reasons, and its answers are stored as LangChain's clients return them: a
# list of content with a block of reasoning before the text. One would guess that another provider's client sends the
# text and leaves out reasoning that it cannot use, in particular a client of local models, which have no signatures.
#
# What happens: Google's, Bedrock's and OpenAI's do. ChatOllama raises a ValueError ("Unsupported message content type")
# before anything is sent, for Anthropic's block "thinking" and for OpenAI's block "reasoning" alike.
#
# Why it matters for chat memory: one stored answer makes the whole conversation unusable for the local model that is
# the usual fallback. A memory that may change the provider has to show text instead of blocks.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check "langchain-core==1.8.3" "langchain-ollama==1.1.0" \
    "langchain-aws==1.9.1" "langchain-google-genai==4.4.3" "langchain-openai==1.7.4"
cat > reasoning.py <<'PY'
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from langchain_aws import ChatBedrockConverse
from langchain_core.messages import AIMessage, HumanMessage
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI

bodies = []


class Recorder(BaseHTTPRequestHandler):
    """A server that keeps what is sent and has no answer."""

    def do_POST(self):
        bodies.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
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
    "OpenAI": ChatOpenAI(model="gpt-4o", api_key="none", base_url=url, max_retries=0),
    "Google": ChatGoogleGenerativeAI(
        model="gemini-2.5-flash", api_key="none", base_url=url, max_retries=0, vertexai=False
    ),
    "Bedrock": ChatBedrockConverse(
        model="anthropic.claude-3-5-sonnet-20240620-v1:0", region_name="us-east-1", endpoint_url=url,
        aws_access_key_id="none", aws_secret_access_key="none",
    ),
    "Ollama": ChatOllama(model="llama3.2", base_url=url),
}
text = {"type": "text", "text": "A lemon cake."}
blocks = {
    "Anthropic": {"type": "thinking", "thinking": "No nuts.", "signature": "c2lnbmVk"},
    "OpenAI": {"type": "reasoning", "id": "rs_1", "summary": []},
}


def outcome(model, block):
    """Whether a model's client sends the text of an answer with a block before it."""
    bodies.clear()
    try:
        model.invoke([HumanMessage("Suggest a cake."), AIMessage([block, text]), HumanMessage("Why that one?")])
    except Exception as error:
        if not bodies:
            return f"{type(error).__name__}: {str(error)[:32]}"
    return "sent" if "A lemon cake." in bodies[-1] else "without the text"


seen = {name: [outcome(model, block) for block in blocks.values()] for name, model in models.items()}
for name, outcomes in seen.items():
    print(name, dict(zip(blocks, outcomes)))
refused = "ValueError: Unsupported message content type"
expected = {name: ["sent"] * 2 for name in ("OpenAI", "Google", "Bedrock")} | {"Ollama": [refused] * 2}
sys.exit(0 if seen == expected else 1)
PY
venv/bin/python -W ignore reasoning.py
