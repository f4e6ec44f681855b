// The page: conversations and threads at the side, the map in the middle, and the changes.

import { byId, change, formatTime, hueOf, learnWords, make, notify, plural, read, say, showDialog, showErrors } from "./dom.js";
import { MessageMap } from "./map.js";
import { closePanel, focusPanel, isOpen, showDoubts, showHits, showNode, showSummaries } from "./panel.js";

const view = { owner: "", writes: false, conversation: "", title: "", thread: null, node: null, back: null, listed: "", tree: "", cursor: null, archived: false };

const map = new MessageMap(byId("map"), {
  load: async (ids) => {
    const lines = [];
    for (let from = 0; from < ids.length; from += 200) {
      const part = ids.slice(from, from + 200).join(",");
      lines.push(...(await read("lines", { conversation: view.conversation, ids: part })).lines);
    }
    return lines;
  },
  select: (id) => {
    remember(id);
    if (isOpen() && view.node !== null && view.node !== id) later(() => actions.open(id));
  },
  open: (id, focus) => actions.open(id, focus),
  place: (id, parent) => actions.place(id, parent),
  drag: (active) => (byId("root").hidden = !active || !view.writes),
});
view.map = map;

function later(work) {
  clearTimeout(later.timer);
  later.timer = setTimeout(work, 120);
}

function remember(id) {
  const parts = new URLSearchParams({ conversation: view.conversation, ...(id ? { message: id } : {}) });
  history.replaceState(null, "", `/#${parts}`);
}

// Conversations and threads

const listConversations = showErrors(async (add = false) => {
  const values = { query: byId("filter").value, archived: byId("archived").checked, cursor: add ? view.cursor : "" };
  const page = await read("conversations", values);
  view.cursor = page.cursor;
  byId("more").hidden = !page.cursor;
  const items = page.items.map((item) =>
    make(
      "li",
      {},
      make(
        "button",
        { class: "item", "data-id": item.id, "aria-current": item.id === view.conversation ? "true" : null, onclick: () => openConversation(item.id) },
        make("b", {}, make("span", {}, item.title), item.archived ? say("archived", "archived", "small") : ""),
        make("small", {}, `${plural(item.messages, "message")} · ${formatTime(item.updated, true)}`),
        make("small", {}, item.preview),
      ),
    ),
  );
  if (add) byId("conversations").append(...items);
  else byId("conversations").replaceChildren(...items);
  if (!add && !items.length) byId("conversations").append(make("li", { class: "soft" }, "No conversation matches."));
  const current = page.items.find((item) => item.id === view.conversation);
  if (current) {
    view.title = current.title;
    view.archived = current.archived;
    nameConversation();
  }
  return page.items;
});

function nameConversation() {
  byId("title").textContent = view.title || view.conversation;
  document.title = `${view.title || view.conversation} – threadmem`;
  byId("archive").textContent = view.archived ? "Unarchive" : "Archive";
}

const openConversation = showErrors(async (id, message = null) => {
  if (id !== view.conversation) {
    Object.assign(view, { conversation: id, thread: null, node: null, back: null, title: "", archived: false });
    if (isOpen()) closePanel();
    for (const item of byId("conversations").querySelectorAll(".item")) {
      if (item.dataset.id === id) {
        item.setAttribute("aria-current", "true");
        view.title = item.querySelector("b span").textContent;
        view.archived = item.querySelector("b small") !== null;
      } else item.removeAttribute("aria-current");
    }
    nameConversation();
    await loadTree();
    side(false);
  }
  map.pick(message ?? map.doc.tip);
  if (message) await actions.open(message);
});

async function loadTree() {
  const { conversation } = view;
  const doc = await read("tree", { conversation, replaced: byId("replaced").checked });
  if (conversation !== view.conversation) return null;
  view.tree = doc.version;
  if (view.thread !== null && !doc.threads.some((thread) => thread.id === view.thread)) {
    // The thread has grown, or its end has moved.
    const grown = doc.threads.find((thread) => pathIn(doc, thread.id).includes(view.thread));
    view.thread = grown ? grown.id : null;
  }
  map.show(doc, view.thread === null ? null : pathIn(doc, view.thread));
  byId("counts").textContent = `${plural(doc.ids.length, "message")} in ${plural(doc.threads.length, "thread")}`;
  byId("replaced-name").textContent = doc.hidden ? plural(doc.hidden, "hidden message") : "hidden messages";
  byId("empty").hidden = doc.ids.length > 0;
  byId("empty").textContent = "This conversation has no messages.";
  listThreads(doc);
  return doc;
}

function pathIn(doc, tip) {
  const parents = new Map(doc.ids.map((id, at) => [id, doc.parents[at]]));
  const path = [];
  for (let id = tip; parents.has(id); id = parents.get(id)) path.push(id);
  return path;
}

function listThreads(doc) {
  const roots = new Map();
  for (const thread of doc.threads) roots.set(thread.root, (roots.get(thread.root) ?? 0) + 1);
  const all = make(
    "button",
    { class: "item", "aria-current": view.thread === null ? "true" : null, onclick: () => showThread(null) },
    make("b", {}, "All threads"),
  );
  const items = doc.threads.map((thread) => {
    // A branch has a name of its own; the oldest thread of a root has the title of the root.
    const isBranch = roots.get(thread.root) > 1 && doc.strands[map.index.get(thread.root)] !== thread.strand;
    const title = isBranch ? doc.topics[thread.strand] : thread.title;
    return make(
      "button",
      {
        class: "item",
        "aria-current": view.thread === thread.id ? "true" : null,
        "--hue": hueOf(thread.color),
        onclick: () => showThread(thread.id),
        onkeydown: (event) => event.key === "F2" && actions.renameThread(thread.id, thread.title),
        ondblclick: () => actions.renameThread(thread.id, thread.title),
        title: view.writes ? "F2 or double click: rename" : null,
      },
      make("b", {}, make("i", { class: "dot", "aria-hidden": "true" }), make("span", {}, title), thread.active ? say("active", "active", "small") : ""),
      isBranch ? say("branch", `branch of ${doc.topics[doc.strands[map.index.get(thread.root)]]}`, "small") : "",
      make("small", {}, `${plural(thread.messages, "message")} · ${formatTime(thread.updated, true)}`),
    );
  });
  const focused = byId("threads").contains(document.activeElement);
  byId("threads").replaceChildren(...[all, ...items].map((item) => make("li", {}, item)));
  if (focused) (byId("threads").querySelector("[aria-current]") ?? all).focus();
}

function showThread(id) {
  view.thread = id;
  map.show(map.doc, id === null ? null : map.path(id));
  listThreads(map.doc);
  map.pick(id ?? map.selected ?? map.doc.tip);
  side(false);
}

function side(shown) {
  byId("side").classList.toggle("shown", shown);
  byId("menu").setAttribute("aria-expanded", String(shown));
}

// Actions on messages and threads

const actions = {
  open: showErrors(async (id, focus = false, whole = false) => {
    const node = await read("node", { conversation: view.conversation, id, whole });
    view.node = id;
    if (map.selected !== id && map.rowOf.has(id)) map.pick(id);
    showNode(node, view, actions);
    if (focus) focusPanel();
  }),

  openHit: showErrors(async (hit) => {
    const back = view.results;
    if (hit.conversation && hit.conversation !== view.conversation) await openConversation(hit.conversation);
    if (!map.rowOf.has(hit.id) && view.thread !== null) showThread(null);
    view.back = back;
    await actions.open(hit.id);
    map.pick(hit.id);
  }),

  place: showErrors(async (id, parent) => {
    const done = await change("place", { conversation: view.conversation, id, parent });
    if (view.node === null && isOpen()) view.back = view.results;
    await loadTree();
    if (!map.rowOf.has(done.id)) showThread(null);
    map.pick(done.id);
    await actions.open(done.id);
    if (done.before === parent) notify("The place is confirmed.");
    else notify(parent === null ? "The message now begins a thread." : `The message now continues message ${parent}.`, { name: "Undo", run: () => actions.place(done.id, done.before) });
  }),

  move: showErrors(async (id) => {
    if (!view.writes || !map.rowOf.has(id) || !map.isLive(id)) return;
    const node = await read("node", { conversation: view.conversation, id });
    const parent = await showDialog(`Move message ${id}`, ...(await places(node)), "Move");
    if (parent !== undefined) await actions.place(id, parent.id);
    byId("map").focus();
  }),

  renameThread: showErrors(async (id, title = null) => {
    if (!view.writes) return;
    const root = map.path(id)[0];
    const old = title ?? map.doc.threads.find((thread) => thread.root === root)?.title ?? map.topicOf(id);
    const field = make("input", { type: "text", value: old, "aria-label": "Title" });
    const hint = make("p", { class: "soft" }, "If the title is empty, the thread is named by its first words.");
    const newTitle = await showDialog("Rename the thread", [field, hint], () => field.value.trim(), "Rename");
    if (newTitle === undefined) return;
    const done = await change("rename_thread", { conversation: view.conversation, id, title: newTitle });
    await loadTree();
    notify(`The thread now has the title “${done.title}”.`);
  }),

  revise: showErrors(async (node) => {
    const field = make("textarea", { value: node.text, "aria-label": "New version" });
    const name = node.kind === "user" ? "Edit the message" : "Write another answer";
    const hint = make("p", { class: "soft" }, "The new version replaces this version, which stays in the history.");
    const text = await showDialog(name, [field, hint], () => field.value.trim() || undefined, "Save");
    if (text === undefined) return;
    const done = await change("revise", { conversation: view.conversation, id: node.id, text });
    await loadTree();
    await actions.open(done.id);
  }),

  continueAt: showErrors(async (id) => {
    await change("switch", { conversation: view.conversation, id });
    await loadTree();
    notify("The next message continues this thread.");
  }),

  showThread: (id) => {
    const thread = map.doc.threads.find(({ id: tip }) => map.path(tip).includes(id));
    if (!thread) return notify("The message was replaced, so it is not in a thread.");
    showThread(thread.id);
    map.pick(id);
    return undefined;
  },
};

/** The body of the dialog that moves a message, and the function that returns the chosen place. */
async function places(node) {
  const byParent = new Map();
  const add = (id, title, chance) => byParent.has(id) || byParent.set(id, { id, title, chance, hue: id === null ? null : map.hueOf(id) });
  for (const { id, chance } of node.chances) add(id, id === null ? "A new thread" : map.topicOf(id) || `Message ${id}`, chance);
  add(null, "A new thread");
  for (const thread of map.doc.threads) {
    const end = map.endBefore(thread.id, node.id);
    if (end !== undefined) add(end, thread.title);
  }
  byParent.delete(node.parent ?? null);
  const ids = [...byParent.keys()].filter((id) => id !== null).slice(0, 200);
  const lines = new Map();
  if (ids.length) for (const line of (await read("lines", { conversation: view.conversation, ids: ids.join(",") })).lines) lines.set(line.id, line);
  const all = [...byParent.values()].filter(({ id }) => id === null || lines.has(id));
  let chosen = 0;
  const list = make("ul", { class: "choices", role: "listbox", tabindex: "0", "aria-label": "Places" });
  const number = make("input", { type: "text", inputmode: "numeric", placeholder: "or a message number", "aria-label": "Number of another message" });
  const filter = make("input", { type: "search", placeholder: "Filter threads", "aria-label": "Filter threads", "aria-controls": "places" });
  list.id = "places";
  const matches = () => {
    const words = filter.value.toLowerCase();
    return all.filter(({ id, title }) => `${title} ${lines.get(id)?.line ?? ""}`.toLowerCase().includes(words));
  };
  const draw = () => {
    const shown = matches();
    chosen = Math.max(0, Math.min(chosen, shown.length - 1));
    list.replaceChildren(
      ...shown.map(({ id, title, chance, hue }, at) =>
        make(
          "li",
          { class: "choice", role: "option", id: `place-${at}`, "aria-selected": String(at === chosen), "--hue": hue, onclick: () => { chosen = at; draw(); } },
          make("b", {}, hue === null ? "" : make("i", { class: "dot", "aria-hidden": "true" }), make("span", {}, title), chance === undefined ? "" : make("small", {}, `${Math.round(100 * chance)} %`)),
          id === null ? "" : make("small", {}, `after ${id}: ${lines.get(id).line}`),
        ),
      ),
    );
    if (shown.length) list.setAttribute("aria-activedescendant", `place-${chosen}`);
    list.children[chosen]?.scrollIntoView({ block: "nearest" });
  };
  const key = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      chosen += step;
      draw();
    }
  };
  filter.addEventListener("input", draw);
  filter.addEventListener("keydown", key);
  list.addEventListener("keydown", key);
  list.addEventListener("keydown", (event) => event.key === "Enter" && list.closest("form").requestSubmit());
  draw();
  const accept = () => {
    if (number.value.trim()) {
      const id = Number(number.value);
      if (map.index.has(id)) return { id };
      notify(`There is no message ${number.value}.`);
      return undefined;
    }
    return matches()[chosen];
  };
  return [[filter, list, number], accept];
}

// Search, doubtful places and summaries

const search = showErrors(async () => {
  const query = byId("query").value.trim();
  if (!query || !view.conversation) return;
  const everywhere = byId("everywhere").checked;
  const { items } = await read("recall", { conversation: view.conversation, query, everywhere });
  showResults("Hits", () => showHits(query, items, view, actions));
});

/** Show results in the panel; a message that is opened from them has a button back to them. */
function showResults(name, show) {
  const run = () => {
    view.node = null;
    view.back = null;
    show();
  };
  view.results = { name, run };
  run();
  focusPanel();
}

byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  search();
});
byId("doubtful").addEventListener("click", showErrors(async () => {
  const show = async () => showDoubts((await read("doubtful", { conversation: view.conversation })).items, view, actions);
  showResults("Doubtful places", showErrors(show));
}));
byId("summaries").addEventListener("click", showErrors(async () => {
  const { items } = await read("summary", { conversation: view.conversation });
  showResults("Summaries", () => showSummaries(items, view, actions));
}));
byId("replaced").addEventListener("change", showErrors(loadTree));
byId("rename").addEventListener("click", showErrors(async () => {
  const field = make("input", { type: "text", value: view.title, "aria-label": "Title" });
  const title = await showDialog("Rename the conversation", field, () => field.value.trim(), "Rename");
  if (title === undefined) return;
  view.title = (await change("rename", { conversation: view.conversation, title })).title;
  nameConversation();
  await listConversations();
}));
byId("archive").addEventListener("click", showErrors(async () => {
  view.archived = (await change("archive", { conversation: view.conversation, archived: !view.archived })).archived;
  nameConversation();
  notify(view.archived ? "The conversation is archived." : "The conversation is no longer archived.");
  await listConversations();
}));
byId("filter").addEventListener("input", () => {
  clearTimeout(listConversations.timer);
  listConversations.timer = setTimeout(() => listConversations(), 200);
});
byId("archived").addEventListener("change", () => listConversations());
byId("more").addEventListener("click", () => listConversations(true));
byId("menu").addEventListener("click", () => side(!byId("side").classList.contains("shown")));
const root = byId("root");
root.addEventListener("dragover", (event) => {
  event.preventDefault();
  root.classList.add("over");
});
root.addEventListener("dragleave", () => root.classList.remove("over"));
root.addEventListener("drop", (event) => {
  event.preventDefault();
  root.classList.remove("over");
  if (map.dragged) actions.place(map.dragged, null);
});

document.addEventListener("keydown", (event) => {
  if (byId("dialog").open || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    if (byId("side").classList.contains("shown")) side(false);
    else if (isOpen()) closePanel();
    return;
  }
  if (event.target.closest?.("input, textarea, dialog")) return;
  const keys = {
    "/": () => byId("query").focus(),
    m: () => map.selected !== null && actions.move(map.selected),
    t: () => (view.thread === null ? map.selected !== null && actions.showThread(map.selected) : showThread(null)),
  };
  if (keys[event.key]) {
    event.preventDefault();
    keys[event.key]();
  }
});

// Other processes may write, so the page requests the version of the conversation once a second.

async function poll() {
  let wait = 1000;
  if (!document.hidden) {
    try {
      const version = await read("version", { conversation: view.conversation });
      if (view.lost) notify("The server responds again.");
      view.lost = false;
      if (view.listed && version.list !== view.listed) await listConversations();
      view.listed = version.list;
      if (version.tree === null && view.conversation) {
        const items = await listConversations();
        view.conversation = "";
        if (items?.length) await openConversation(items[0].id);
        notify("The conversation was removed.");
      } else if (version.tree !== null && version.tree !== view.tree) {
        const before = map.doc?.ids.length ?? 0;
        const doc = await loadTree();
        const more = (doc?.ids.length ?? 0) - before;
        if (more > 0) notify(plural(more, "new message"));
        if (view.node !== null && isOpen() && !byId("panel").contains(document.activeElement)) await actions.open(view.node);
      }
    } catch {
      if (!view.lost) notify("The server does not respond. Start it again with `threadmem view`.");
      view.lost = true;
      wait = 5000;
    }
  }
  setTimeout(poll, wait);
}

const start = showErrors(async () => {
  const address = new URLSearchParams(location.hash.slice(1));
  history.replaceState(null, "", `/${location.hash}`); // The address no longer contains the token.
  Object.assign(view, await read("about"));
  await learnWords();
  map.writes = view.writes;
  for (const name of ["rename", "archive"]) byId(name).hidden = !view.writes;
  const items = await listConversations();
  const id = address.get("conversation") ?? items?.[0]?.id;
  if (id) {
    await openConversation(id, address.has("message") ? Number(address.get("message")) : null);
    byId("map").focus();
  } else {
    byId("empty").hidden = false;
    byId("empty").textContent = `${view.owner} has no conversations.`;
    byId("title").textContent = "threadmem";
  }
  setTimeout(poll, 1000);
});
start();
