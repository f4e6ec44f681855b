#!/usr/bin/env bash
# langmem 0.0.30 (langgraph 1.2.22, langchain-core 1.7.2): `SummarizationNode`.
#
# One would guess: the node summarises earlier messages, and passes the newest question on to the model.
# What happens: the oldest messages are summarised up to the one with which `max_tokens_before_summary` is
#   reached, and this may be the newest one. A first question of 300 tokens is enough with the limits of
#   langmem's own example (256, 256, 128): the node returns the summary alone, as a system message.
# Why it matters for chat memory: the model is asked without the question, and answers the summary. A long
#   pasted text is the usual case. A program has to compare the length of the newest message with the limit.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    langmem==0.0.30 langgraph==1.2.22 langchain-core==1.7.2 langchain==1.4.7
cat > "$folder/program.py" <<'PYTHON'
import warnings

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage

warnings.simplefilter("ignore")
from langmem.short_term import SummarizationNode

limits = {"max_tokens": 256, "max_tokens_before_summary": 256, "max_summary_tokens": 128}
node = SummarizationNode(model=FakeListChatModel(responses=["Bob says hi."]), **limits)
question = "Which of these lines is wrong? " + "total = price * count + shipping; " * 40
given = [HumanMessage("Hi, I am Bob.", id="1"), AIMessage("Hello Bob!", id="2"), HumanMessage(question, id="3")]
shown = node.invoke({"messages": given, "context": {}})["summarized_messages"]
print("given to the node: ", [(message.type, message.text[:30]) for message in given])
print("left for the model:", [(message.type, message.text) for message in shown])
assert [message.type for message in shown] == ["system"], "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" -W ignore "$folder/program.py"
