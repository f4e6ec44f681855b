#!/usr/bin/env bash
# @google/gemini-cli-core 0.61.0 (Gemini CLI): convertSessionToClientHistory, which makes the history of a resumed
# session from its log.
#
# Guess: a resumed session shows the model all questions of the log with their answers; what Gemini CLI leaves out are
# the commands of its interface, such as /help.
#
# What happens: every message of the person that begins with "/" or "?" is left out, whatever follows: a question about
# a path, or "?? and why". Its answer stays, so that two answers of the model follow each other.
#
# Why it matters for chat memory: the history of a resumed session is not the conversation, and lists with answers that
# have no question reach whatever stores or summarizes them. A reader of such logs has to take the questions from the
# log, and cannot tell commands from questions by the first character.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init --yes > init.log
npm install --ignore-scripts --no-audit --no-fund --omit=optional --silent "@google/gemini-cli-core@0.61.0"
cat > show.mjs <<'PROGRAM'
import { convertSessionToClientHistory } from '@google/gemini-cli-core/dist/src/utils/sessionUtils.js';

const said = [
  ['user', '/etc/hosts has two names for my printer. Which one is used?'],
  ['gemini', 'The first one.'],
  ['user', '?? and why'],
  ['gemini', 'Names are read from the top.'],
  ['user', 'Thanks.'],
];
const log = said.map(([type, text], number) => ({
  id: String(number),
  timestamp: '2026-05-28T10:00:00.000Z',
  type,
  content: [{ text }],
}));
const history = convertSessionToClientHistory(log).map(({ content }) => `${content.role}: ${content.parts[0].text}`);
console.log(history.join('\n'));
const expected = ['model: The first one.', 'model: Names are read from the top.', 'user: Thanks.'];
process.exit(history.join('\n') === expected.join('\n') ? 0 : 1);
PROGRAM
node show.mjs
