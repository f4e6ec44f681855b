#!/usr/bin/env bash
# langchain-google-genai 4.4.2 (langchain-core 1.7.2, google-genai 2.34.0): an image by its address (URL).
#
# One would guess: an image block with a `url` is sent to the provider as an address, as LangChain's clients of OpenAI
#   and Anthropic do, or it is read once and kept.
# What happens: the client itself downloads the image, each time the message is part of a request. A conversation with
#   one image downloads it again with each turn. When the address does not answer any more, as a signed address after
#   an hour, no request of the conversation can be built: a HTTPError is raised before anything is sent.
# Why it matters for chat memory: a stored conversation that was fine with another provider, or on the day before,
#   cannot be continued, although only its first message has the image. Images have to be stored as data.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    langchain-google-genai==4.4.2 google-genai==2.34.0 langchain-core==1.7.2
cat > "$folder/program.py" <<'PYTHON'
import http.server
import threading

from langchain_core.messages import AIMessage, HumanMessage
from langchain_google_genai import ChatGoogleGenerativeAI

downloads, answers = [], [200]


class Images(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        downloads.append(self.path)
        self.send_response(answers[0])
        self.send_header("Content-Type", "image/png")
        self.end_headers()
        self.wfile.write(b"\x89PNG\r\n\x1a\n0000")

    def log_message(self, *values):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Images)
threading.Thread(target=server.serve_forever, daemon=True).start()
image = {"type": "image", "url": f"http://127.0.0.1:{server.server_port}/cat.png"}
model = ChatGoogleGenerativeAI(model="gemini-2.5-flash", google_api_key="none")
messages = [HumanMessage([{"type": "text", "text": "What is this?"}, image])]
for _ in range(3):
    model._prepare_request(messages)
    messages += [AIMessage("A cat."), HumanMessage("Tell me more.")]
print("downloads for three turns:", len(downloads))
answers[0] = 403
try:
    model._prepare_request(messages)
    refused = None
except Exception as error:
    refused = error
print("the fourth turn, when the address has expired:", type(refused).__name__, str(refused)[:40])
assert len(downloads) == 4, "the behaviour has changed: the image is not read for each request"
assert "403" in str(refused), "the behaviour has changed: the conversation can be continued"
PYTHON
"$folder/venv/bin/python" -W ignore "$folder/program.py"
