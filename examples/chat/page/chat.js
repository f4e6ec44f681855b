// The page of the chat. Texts of people and models are inserted as text nodes only, never as HTML.

const $ = (id) => document.getElementById(id);
const page = { conversation: null, opened: null, state: null, busy: false };

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child !== null));
  return made;
}

const button = (text, onclick, properties = {}) =>
  element("button", { type: "button", className: "quiet", textContent: text, onclick, ...properties });

const TAGS = new Set("p h4 h5 h6 ul ol li blockquote pre code span em strong s table thead tbody tr th td a br hr".split(" "));
const ATTRIBUTES = new Set("class href title target rel referrerpolicy start".split(" "));

/** The elements of a rendered answer: texts, and lists of a tag, attributes and parts. */
const build = (parts) => parts.flatMap((part) => {
  if (typeof part === "string") return [part];
  const [tag, attributes, ...inner] = part;
  if (!TAGS.has(tag)) return build(inner);
  const made = element(tag, {}, ...build(inner));
  for (const [name, value] of Object.entries(attributes)) if (ATTRIBUTES.has(name)) made.setAttribute(name, value);
  return [made];
});

// Calls of the server

async function call(path, body) {
  const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch("/api/" + path, body === undefined ? {} : options);
  if (response.ok) return response;
  if (response.status === 401) showSignIn();
  throw new Error(await response.text());
}

const json = async (path, body) => (await call(path, body)).json();
const here = (verb = "") => `conversations/${encodeURIComponent(page.conversation)}${verb && "/" + verb}`;

async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let buffer = "", part = await reader.read(); !part.done; part = await reader.read()) {
    buffer += part.value;
    for (let end = buffer.indexOf("\n\n"); end >= 0; end = buffer.indexOf("\n\n")) {
      const [event, data] = buffer.slice(0, end).split("\n");
      buffer = buffer.slice(end + 2);
      yield [event.slice(7), JSON.parse(data.slice(6))];
    }
  }
}

// An answer is streamed into a message of its own, which the state replaces at the end.
async function answer(verb, body, question = null) {
  const conversation = page.conversation;
  const former = page.state?.threads.find(({ active }) => active);
  const isShown = () => conversation === page.conversation;
  const bubble = element("div", { className: "text plain" });
  const waiting = element("li", { className: "message ai writing" }, bubble);
  const show = () => isShown() && ($("messages").append(waiting), ($("empty").hidden = true), toEnd());
  setBusy(true);
  notice();
  if (question !== null) $("messages").append(messageItem({ role: "human", text: question, versions: [] }));
  if (verb === "regenerate") makeWay(body.node);
  show();
  try {
    let selection = null;
    for await (const [event, data] of events(await call(here(verb), body))) {
      if (!isShown()) continue;
      if (event === "token") bubble.textContent += data;
      if (event === "state") render(data);
      if (event === "state" && data.busy) show();
      if (event === "selection") selection = data;
      if (event === "error") notice(data);
      if (event === "token" && atEnd()) toEnd();
    }
    if (isShown() && selection) noticeSelection(selection, former);
  } catch (error) {
    if (isShown()) notice(error.message);
    if (isShown()) render(await json(here()));
  } finally {
    if (isShown()) setBusy(false);
    await listConversations();
  }
}

async function change(verb, body) {
  try {
    notice();
    render(await json(here(verb), body));
    toEnd();
  } catch (error) {
    notice(error.message);
  }
}

// The view

function messageItem(message) {
  // A question of the moment has no parts yet.
  const text = element("div", { className: "text" }, ...(message.parts ? build(message.parts) : [message.text]));
  const item = element("li", { className: `message ${message.role}` }, text);
  if (message.id === undefined) return item;
  item.dataset.node = message.id;
  item.append(element("div", { className: "actions" }, versionsOf(message), actionOf(message, item)));
  if (message.suggestion) item.append(suggestionOf(message));
  return item;
}

function versionsOf({ id, versions }) {
  if (versions.length < 2) return null;
  const at = versions.indexOf(id);
  const to = (step, sign, label) =>
    button(sign, () => change("version", { node: versions[at + step] }), {
      ariaLabel: label, disabled: page.busy || versions[at + step] === undefined,
    });
  const count = element("span", { textContent: `${at + 1}/${versions.length}` });
  count.setAttribute("aria-label", `version ${at + 1} of ${versions.length}`);
  return element("span", { className: "versions" },
    to(-1, "‹", "Previous version"), count, to(1, "›", "Next version"));
}

function actionOf(message, item) {
  const disabled = page.busy;
  const again = (text) => button(text, () => answer("regenerate", { node: message.id }), { disabled });
  if (message.role === "ai") return again("Regenerate");
  const edit = button("Edit", () => editor(message, item), { disabled });
  return element("span", {}, edit, message === page.state.messages.at(-1) ? again("Answer") : "");
}

function suggestionOf({ id, parent, suggestion }) {
  const place = (text, target) =>
    button(text, () => change("place", { node: id, parent: target }), { disabled: page.busy });
  const other = suggestion.parent_id;
  return element("div", { className: "suggestion" },
    element("span", { textContent: "Another topic?" }),
    other === null ? null : place(moveTo(suggestion.title), other),
    parent === null ? null : place("New thread", null),
    place("Keep here", parent));
}

// Branches of one thread have the same title.
function moveTo(title) {
  const active = page.state.threads.find((thread) => thread.active);
  return active?.title === title ? "Another place in this thread" : `Move to “${title}”`;
}

function editor(message, item) {
  const field = element("textarea", { value: message.text, rows: 3, maxLength: 20000, ariaLabel: "Edited message" });
  const done = () => item.replaceWith(messageItem(message));
  const form = element("form", { className: "editor" }, field,
    element("button", { className: "primary", textContent: "Save and answer" }), button("Cancel", done));
  form.onsubmit = (event) => {
    event.preventDefault();
    if (field.value.trim()) answer("edit", { node: message.id, text: field.value });
  };
  form.onkeydown = (event) => event.key === "Escape" && done();
  item.replaceChildren(form);
  field.focus();
}

// Removes the former answer, or all messages after an edited question, before the new answer is shown.
function makeWay(node) {
  const items = [...$("messages").children];
  const at = items.findIndex((item) => Number(item.dataset.node) === node);
  for (const item of items.slice(items[at].classList.contains("human") ? at + 1 : at)) item.remove();
}

function render(state) {
  const wasAtEnd = atEnd();
  page.state = state;
  $("messages").replaceChildren(...state.messages.map(messageItem));
  $("empty").hidden = state.messages.length > 0;
  $("earlier").hidden = state.earlier === 0;
  $("earlier").textContent = `Show ${state.earlier} earlier messages`;
  $("thread-list").replaceChildren(...state.threads.map(({ id, name, preview, messages, active }) => {
    const count = element("span", { className: "count", textContent: `${messages} message${messages > 1 ? "s" : ""}` });
    const open = button("", () => (closeSides(), change("switch", { node: id })), { className: "thread", disabled: page.busy });
    const last = element("span", { className: "preview", textContent: preview });
    open.append(element("span", { className: "name", textContent: name }), last, count);
    if (active) open.setAttribute("aria-current", "true");
    return element("li", {}, open);
  }));
  $("show-threads").textContent = state.threads.length ? `Threads (${state.threads.length})` : "Threads";
  if (state.busy !== page.busy) setBusy(state.busy);
  if (wasAtEnd) toEnd();
}

function setBusy(busy) {
  page.busy = busy;
  $("send").hidden = busy;
  $("stop").hidden = !busy;
  const controls = document.querySelectorAll("#messages button, #thread-list button, #earlier");
  if (busy) for (const control of controls) control.disabled = true;
  else if (page.state) render({ ...page.state, busy });
}

function notice(text = null, ...actions) {
  $("notices").replaceChildren(...(text === null ? [] : [element("span", { textContent: text }), ...actions]));
}

function noticeSelection({ kind, title, node_id: node, former: parent }, former) {
  if (parent === null || former === undefined) return;
  const text = kind === "new_thread" ? `New thread “${title}”.` : `Back to “${title}”.`;
  const back = title === former.title ? "Move to the last message" : `Move to “${former.title}”`;
  notice(text, button(back, () => change("place", { node, parent })));
}

const atEnd = () => $("scroll").scrollHeight - $("scroll").scrollTop - $("scroll").clientHeight < 120;
const toEnd = () => ($("scroll").scrollTop = $("scroll").scrollHeight);

// Conversations

async function listConversations() {
  const { user, conversations } = await json("conversations");
  $("user").textContent = user;
  const current = conversations.find(({ id }) => id === page.conversation);
  $("title").textContent = document.title = current ? current.title : "New chat";
  $("conversation-list").replaceChildren(...conversations.map(({ id, title }) => {
    const open = button(title, () => openConversation(id), { className: "conversation" });
    if (id === page.conversation) open.setAttribute("aria-current", "true");
    return element("li", {}, open);
  }));
  return conversations;
}

async function openConversation(id) {
  page.conversation = id ?? Array.from(crypto.getRandomValues(new Uint8Array(12)), (n) => n.toString(16).padStart(2, "0")).join("");
  if (location.hash.slice(1) !== page.conversation) history.pushState(null, "", "#" + page.conversation);
  closeSides();
  notice();
  page.busy = false;
  page.opened = Promise.all([reload(), listConversations()]).catch((error) => notice(error.message));
  await page.opened;
  $("text").focus();
}

async function reload(everything = false) {
  const conversation = page.conversation;
  const state = await json(here() + (everything ? "?everything" : ""));
  if (conversation !== page.conversation) return;
  render(state);
  if (!everything) toEnd();
  if (state.busy) setTimeout(() => conversation === page.conversation && reload(), 1000);
}

function closeSides() {
  for (const name of ["conversations", "threads"]) toggleSide(name, false);
}

function toggleSide(name, open = !$(name).classList.contains("open")) {
  if (open) closeSides();
  $(name).classList.toggle("open", open);
  $("show-" + name).setAttribute("aria-expanded", open);
}

function showSignIn() {
  $("sign-in").hidden = false;
  $("app").hidden = true;
  $("name").focus();
}

async function showApp() {
  const conversations = await listConversations();
  $("sign-in").hidden = true;
  $("app").hidden = false;
  await openConversation(location.hash.slice(1) || conversations[0]?.id);
}

// Controls

// A message sent before its conversation is shown would be removed by the state that arrives after it.
async function sendText() {
  await page.opened;
  const text = $("text").value;
  if (page.busy || !text.trim()) return;
  $("text").value = "";
  answer("send", { text }, text);
}

$("sign-in").onsubmit = async (event) => {
  event.preventDefault();
  await call("sign_in", { name: $("name").value });
  history.replaceState(null, "", "#");
  await showApp();
};
$("sign-out").onclick = async () => (await call("sign_out", {}), (page.conversation = null), showSignIn());
$("new").onclick = () => openConversation();
$("compose").onsubmit = (event) => (event.preventDefault(), sendText());
$("text").onkeydown = (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) (event.preventDefault(), sendText());
};
$("stop").onclick = () => call(here("stop"), {});
$("earlier").onclick = () => reload(true);
$("show-conversations").onclick = () => toggleSide("conversations");
$("show-threads").onclick = () => toggleSide("threads");
onkeydown = (event) => {
  if (event.key === "Escape") page.busy ? $("stop").click() : closeSides();
};
onpopstate = () => location.hash && openConversation(location.hash.slice(1));
showApp().catch(showSignIn);
