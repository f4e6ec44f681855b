#!/usr/bin/env bash
# @librechat/agents 3.2.21 (the agents of LibreChat): formatAgentMessages, which makes the messages for the model of a
# stored chat.
#
# Guess: a stored answer in which the model called a tool, read the result and then called another tool is sent to the
# model as it happened: a call, its result, a call, its result.
#
# What happens: without a text between the calls, both calls become one message, as if they had been made at once, and
# both results follow it. Only a text part with `tool_call_ids` begins another message, and the agents of LibreChat do
# not write empty texts. A thought between the calls does not separate them either.
#
# Why it matters for chat memory: the list that a model is shown in the next turn differs from the list that it has
# answered, so that the cached prompt does not fit, and an argument of the second call seems to be known before the
# result that it came from. An import from such a chat has to take the order from the parts, not from the messages.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init --yes > init.log
npm install --ignore-scripts --no-audit --no-fund --silent "@librechat/agents@3.2.21"
cat > show.mjs <<'PROGRAM'
import { formatAgentMessages } from '@librechat/agents';

const call = (id, args, output) => ({
  type: 'tool_call',
  tool_call: { id, name: 'look', args: JSON.stringify(args), output, progress: 1 },
});
const stored = [
  { role: 'user', content: 'Who lives beside the baker?' },
  {
    role: 'assistant',
    content: [
      call('first', { who: 'baker' }, 'Mill Lane 3'),
      { type: 'think', think: 'Now the neighbour of Mill Lane 3.' },
      call('second', { address: 'Mill Lane 5' }, 'the smith'),
      { type: 'text', text: 'The smith.' },
    ],
  },
];
const { messages } = formatAgentMessages(stored);
for (const message of messages) {
  const calls = (message.tool_calls ?? []).map((one) => one.id).join(' and ');
  console.log(message.getType(), JSON.stringify(message.content), calls && `calls ${calls}`);
}
const first = messages.find((message) => message.getType() === 'ai');
const kinds = messages.map((message) => message.getType()).join(' ');
process.exit(first.tool_calls.length === 2 && kinds === 'human ai tool tool ai' ? 0 : 1);
PROGRAM
node show.mjs
