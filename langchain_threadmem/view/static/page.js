// The page: conversations and threads at the side, the map in the middle, and the changes.

import { ask, byId, change, hueOf, make, plural, read, tell, trying, whenOf } from "./dom.js";
import { MessageMap } from "./map.js";
import { closePanel, focusPanel, isOpen, showDoubts, showHits, showNode, showSummaries } from "./panel.js";

const view = { owner: "", writes: false, conversation: "", title: "", thread: null, node: null, back: null, listed: "", tree: "", cursor: null, archived: false };

const map = new MessageMap(byId("map"), {
  load: async (ids) => {
    const found = [];
    for (let from = 0; from < ids.length; from += 200) {
      const part = ids.slice(from, from + 200).join(",");
      found.push(...(await read("lines", { conversation: view.conversation, ids: part })).lines);
    }
    return found;
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

const listConversations = trying(async (add = false) => {
  const values = { query: byId("filter").value, archived: byId("archived").checked, cursor: add ? view.cursor : "" };
  const page = await read("conversations", values);
  view.cursor = page.cursor;
  byId("more").hidden = !page.cursor;
  const items = page.items.map((found) =>
    make(
      "li",
      {},
      make(
        "button",
        { class: "item", "data-id": found.id, "aria-current": found.id === view.conversation ? "true" : null, onclick: () => openConversation(found.id) },
        make("b", {}, make("span", {}, found.title), found.archived ? make("small", {}, "archived") : ""),
        make("small", {}, `${plural(found.messages, "message")} · ${whenOf(found.updated, true)}`),
        make("small", {}, found.preview),
      ),
    ),
  );
  if (add) byId("conversations").append(...items);
  else byId("conversations").replaceChildren(...items);
  if (!add && !items.length) byId("conversations").append(make("li", { class: "soft" }, "No conversation fits."));
  const current = page.items.find((found) => found.id === view.conversation);
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
  byId("archive").textContent = view.archived ? "Take out of the archive" : "Archive";
}

const openConversation = trying(async (id, message = null) => {
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
  const asked = view.conversation;
  const doc = await read("tree", { conversation: asked, replaced: byId("replaced").checked });
  if (asked !== view.conversation) return null;
  view.tree = doc.version;
  if (view.thread !== null && !doc.threads.some((thread) => thread.id === view.thread)) {
    // The thread has grown, or its end has moved.
    const grown = doc.threads.find((thread) => map.doc && pathIn(doc, thread.id).includes(view.thread));
    view.thread = grown ? grown.id : null;
  }
  map.show(doc, view.thread === null ? null : pathIn(doc, view.thread));
  byId("counts").textContent = `${plural(doc.ids.length, "message")} in ${plural(doc.threads.length, "thread")}`;
  byId("replaced-name").textContent = doc.hidden ? `${plural(doc.hidden, "replaced version")}` : "replaced versions";
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
    const branch = roots.get(thread.root) > 1 ? doc.topics[thread.strand] ?? "" : "";
    const title = branch && branch !== thread.title ? `${thread.title} › ${branch}` : thread.title;
    return make(
      "button",
      {
        class: "item",
        "aria-current": view.thread === thread.id ? "true" : null,
        "--hue": hueOf(thread.strand ?? 0),
        onclick: () => showThread(thread.id),
        onkeydown: (event) => event.key === "F2" && actions.renameThread(thread.id, thread.title),
        ondblclick: () => actions.renameThread(thread.id, thread.title),
        title: view.writes ? "F2 or double click: rename" : null,
      },
      make("b", {}, make("i", { class: "dot", "aria-hidden": "true" }), make("span", {}, title), thread.active ? make("small", {}, "active") : ""),
      make("small", {}, `${plural(thread.messages, "message")} · ${whenOf(thread.updated, true)}`),
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

// What is done with a message

const actions = {
  open: trying(async (id, focus = false, whole = false) => {
    const node = await read("node", { conversation: view.conversation, id, whole });
    view.node = id;
    if (map.selected !== id && map.rowOf.has(id)) map.pick(id);
    showNode(node, view, actions);
    if (focus) focusPanel();
  }),

  openHit: trying(async (hit) => {
    const back = view.results;
    if (hit.conversation && hit.conversation !== view.conversation) await openConversation(hit.conversation);
    if (!map.rowOf.has(hit.id) && view.thread !== null) showThread(null);
    view.back = back;
    await actions.open(hit.id);
    map.pick(hit.id);
  }),

  place: trying(async (id, parent) => {
    const done = await change("place", { conversation: view.conversation, id, parent });
    if (view.node === null && isOpen()) view.back = view.results;
    await loadTree();
    if (!map.rowOf.has(done.id)) showThread(null);
    map.pick(done.id);
    await actions.open(done.id);
    if (done.before === parent) tell("The place is confirmed.");
    else tell(parent === null ? "The message begins a thread." : `The message continues message ${parent}.`, { name: "Undo", run: () => actions.place(done.id, done.before) });
  }),

  move: trying(async (id) => {
    if (!view.writes || !map.rowOf.has(id) || !map.isLive(id)) return;
    const node = await read("node", { conversation: view.conversation, id });
    const parent = await ask(`Move message ${id}`, ...(await places(node)), "Move");
    if (parent !== undefined) await actions.place(id, parent.id);
    byId("map").focus();
  }),

  renameThread: trying(async (id, title = null) => {
    if (!view.writes) return;
    const root = map.path(id)[0];
    const old = title ?? map.doc.threads.find((thread) => thread.root === root)?.title ?? map.topicOf(id);
    const field = make("input", { type: "text", value: old, "aria-label": "Title" });
    const hint = make("p", { class: "soft" }, "Without a title, the thread is named by its first words.");
    const given = await ask("Rename the thread", [field, hint], () => field.value.trim(), "Rename");
    if (given === undefined) return;
    const done = await change("rename_thread", { conversation: view.conversation, id, title: given });
    await loadTree();
    tell(`The thread has the title “${done.title}”.`);
  }),

  revise: trying(async (node) => {
    const field = make("textarea", { value: node.text, "aria-label": "New version" });
    const name = node.kind === "user" ? "Edit the message" : "Regenerate the answer";
    const hint = make("p", { class: "soft" }, "The new version replaces this version, which stays in the history.");
    const text = await ask(name, [field, hint], () => field.value.trim() || undefined, "Save");
    if (text === undefined) return;
    const done = await change("revise", { conversation: view.conversation, id: node.id, text });
    await loadTree();
    await actions.open(done.id);
  }),

  continueAt: trying(async (id) => {
    await change("switch", { conversation: view.conversation, id });
    await loadTree();
    tell("The next message continues this thread.");
  }),

  showThread: (id) => {
    const thread = map.doc.threads.find((one) => pathIn(map.doc, one.id).includes(id));
    if (!thread) return tell("The message is in no thread: it was replaced.");
    showThread(thread.id);
    map.pick(id);
    return undefined;
  },
};

/** The choices of a move: the body of a dialog and the function that returns the choice. */
async function places(node) {
  const named = new Map();
  const add = (id, title, chance) => named.has(id) || named.set(id, { id, title, chance, hue: id === null ? null : map.hueOf(id) });
  for (const { id, chance } of node.chances) add(id, id === null ? "A new thread" : map.topicOf(id) || `Message ${id}`, chance);
  add(null, "A new thread");
  for (const thread of map.doc.threads) {
    const end = map.endBefore(thread.id, node.id);
    if (end !== undefined) add(end, thread.title);
  }
  named.delete(node.parent ?? null);
  const ids = [...named.keys()].filter((id) => id !== null).slice(0, 200);
  const lines = new Map();
  if (ids.length) for (const line of (await read("lines", { conversation: view.conversation, ids: ids.join(",") })).lines) lines.set(line.id, line);
  const all = [...named.values()].filter(({ id }) => id === null || lines.has(id));
  let chosen = 0;
  const list = make("ul", { class: "choices", role: "listbox", tabindex: "0", "aria-label": "Places" });
  const number = make("input", { type: "text", inputmode: "numeric", placeholder: "or a message number", "aria-label": "Number of another message" });
  const filter = make("input", { type: "search", placeholder: "Filter threads", "aria-label": "Filter threads", "aria-controls": "places" });
  list.id = "places";
  const shown = () => {
    const words = filter.value.toLowerCase();
    return all.filter((one) => `${one.title} ${lines.get(one.id)?.line ?? ""}`.toLowerCase().includes(words));
  };
  const draw = () => {
    const found = shown();
    chosen = Math.max(0, Math.min(chosen, found.length - 1));
    list.replaceChildren(
      ...found.map((one, at) =>
        make(
          "li",
          { class: "choice", role: "option", id: `place-${at}`, "aria-selected": String(at === chosen), "--hue": one.hue, onclick: () => { chosen = at; draw(); } },
          make("b", {}, one.hue === null ? "" : make("i", { class: "dot", "aria-hidden": "true" }), make("span", {}, one.title), one.chance === undefined ? "" : make("small", {}, `${Math.round(100 * one.chance)} %`)),
          one.id === null ? "" : make("small", {}, `after ${one.id}: ${lines.get(one.id).line}`),
        ),
      ),
    );
    if (found.length) list.setAttribute("aria-activedescendant", `place-${chosen}`);
    list.children[chosen]?.scrollIntoView({ block: "nearest" });
  };
  const key = (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) {
      event.preventDefault();
      chosen += by;
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
      tell(`There is no message ${number.value}.`);
      return undefined;
    }
    return shown()[chosen];
  };
  return [[filter, list, number], accept];
}

// Search, doubtful places and summaries

const search = trying(async () => {
  const query = byId("query").value.trim();
  if (!query || !view.conversation) return;
  const everywhere = byId("everywhere").checked;
  const found = await read("recall", { conversation: view.conversation, query, everywhere });
  result("Hits", () => showHits(query, found.items, view, actions));
});

function result(name, run) {
  view.node = null;
  const shown = () => {
    view.node = null;
    view.back = null;
    run();
  };
  view.results = { name, run: shown };
  shown();
  focusPanel();
}

byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  search();
});
byId("doubtful").addEventListener("click", trying(async () => {
  const show = async () => showDoubts((await read("doubtful", { conversation: view.conversation })).items, view, actions);
  result("Doubtful places", trying(show));
}));
byId("summaries").addEventListener("click", trying(async () => {
  const found = await read("summary", { conversation: view.conversation });
  result("Summaries", () => showSummaries(found.items, view, actions));
}));
byId("replaced").addEventListener("change", trying(loadTree));
byId("rename").addEventListener("click", trying(async () => {
  const field = make("input", { type: "text", value: view.title, "aria-label": "Title" });
  const title = await ask("Rename the conversation", field, () => field.value.trim(), "Rename");
  if (title === undefined) return;
  view.title = (await change("rename", { conversation: view.conversation, title })).title;
  nameConversation();
  await listConversations();
}));
byId("archive").addEventListener("click", trying(async () => {
  view.archived = (await change("archive", { conversation: view.conversation, archived: !view.archived })).archived;
  nameConversation();
  tell(view.archived ? "The conversation is archived." : "The conversation is out of the archive.");
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

// Another process may write: the version of the conversation is asked for once a second.

async function poll() {
  let wait = 1000;
  if (!document.hidden) {
    try {
      const version = await read("version", { conversation: view.conversation });
      if (view.lost) tell("The server answers again.");
      view.lost = false;
      if (view.listed && version.list !== view.listed) await listConversations();
      view.listed = version.list;
      if (version.tree === null && view.conversation) {
        const items = await listConversations();
        view.conversation = "";
        if (items?.length) await openConversation(items[0].id);
        tell("The conversation was removed.");
      } else if (version.tree !== null && version.tree !== view.tree) {
        const before = map.doc?.ids.length ?? 0;
        const doc = await loadTree();
        const more = (doc?.ids.length ?? 0) - before;
        if (more > 0) tell(plural(more, "new message"));
        if (view.node !== null && isOpen() && !byId("panel").contains(document.activeElement)) await actions.open(view.node);
      }
    } catch {
      if (!view.lost) tell("The server has ended, or does not answer. `threadmem view` starts it again.");
      view.lost = true;
      wait = 5000;
    }
  }
  setTimeout(poll, wait);
}

const start = trying(async () => {
  const place = new URLSearchParams(location.hash.slice(1));
  history.replaceState(null, "", `/${location.hash}`); // The address no longer contains the token.
  Object.assign(view, await read("about"));
  map.writes = view.writes;
  for (const name of ["rename", "archive"]) byId(name).hidden = !view.writes;
  const found = await listConversations();
  const id = place.get("conversation") ?? found?.[0]?.id;
  if (id) {
    await openConversation(id, place.has("message") ? Number(place.get("message")) : null);
    byId("map").focus();
  } else {
    byId("empty").hidden = false;
    byId("empty").textContent = `There are no conversations of ${view.owner}.`;
    byId("title").textContent = "threadmem";
  }
  setTimeout(poll, 1000);
});
start();
