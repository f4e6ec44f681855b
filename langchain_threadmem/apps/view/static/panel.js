// The panel beside the map: a message, hits, doubtful places and summaries.

import { build, byId, formatTime, make, plural, read, say, showErrors } from "./dom.js";

const panel = byId("panel");
const percent = (chance) => `${Math.round(100 * chance)} %`;

export function closePanel() {
  panel.hidden = true;
  document.body.classList.remove("open");
  byId("map").focus();
}

function fill(name, back, ...children) {
  panel.hidden = false;
  document.body.classList.add("open");
  panel.setAttribute("aria-label", name);
  panel.replaceChildren(
    make(
      "div",
      { class: "top" },
      back ? make("button", { onclick: back.run }, `‹ ${back.name}`) : "",
      make("h2", {}, name),
      make("button", { class: "icon", "aria-label": "Close", onclick: closePanel }, "✕"),
    ),
    ...children.flat(Infinity).filter(Boolean),
  );
  panel.scrollTop = 0;
}

/** A message; `actions` are functions of the page. */
export function showNode(node, view, actions) {
  const { map, writes } = view;
  const live = node.state === "live";
  const number = node.versions.findIndex((version) => version.id === node.id);
  const step = (by) => {
    const other = node.versions[number + by];
    return make(
      "button",
      {
        class: "icon",
        disabled: !other,
        "aria-label": by < 0 ? "Previous version" : "Next version",
        onclick: () => actions.open(other.id),
      },
      by < 0 ? "‹" : "›",
    );
  };
  const versions = node.versions.length > 1 && [
    step(-1),
    say(node.kind === "user" ? "edited" : "answered again", `version ${number + 1} of ${node.versions.length}`),
    step(1),
  ];
  const text = make(
    "div",
    { class: `message rendered${live || node.word === "aside" ? "" : " replaced"}`, "--hue": map.hueOf(node.id) },
    node.parts.length ? build(node.parts) : "(no text)",
  );
  fill(
    `${node.role}${node.name ? ` ${node.name}` : ""}, message ${node.id}`,
    view.back,
    make(
      "div",
      { class: "facts" },
      make("span", {}, formatTime(node.time)),
      say(node.word, node.word, "b"),
      node.id === map.doc.tip ? say("active") : "",
      node.by ? make("button", { onclick: () => actions.open(node.by) }, `replaced by ${node.by}`) : "",
      ...(versions || []),
    ),
    text,
    node.length > node.text.length
      ? make("button", { onclick: () => actions.open(node.id, false, true) }, `Show all ${plural(node.length, "character")}`)
      : "",
    node.summary ? [say("summary", "Summary", "h3"), make("p", {}, make("b", {}, `${node.summary.title}. `), node.summary.text)] : "",
    make(
      "div",
      { class: "actions" },
      writes && live ? make("button", { onclick: () => actions.move(node.id) }, "Move …") : "",
      writes && live ? make("button", { onclick: () => actions.renameThread(node.id) }, "Rename thread …") : "",
      writes && live && node.plain && node.kind !== "other"
        ? make("button", { onclick: () => actions.revise(node) }, node.kind === "user" ? "Edit …" : "Write another answer …")
        : "",
      writes ? make("button", { title: "The next message of the chat then follows this thread", onclick: () => actions.continueAt(node.id) }, "Continue here") : "",
      make("button", { onclick: () => actions.showThread(node.id) }, "Show only this thread"),
    ),
    make("h3", {}, "Why it is here"),
    reasons(node, actions, writes && live),
  );
}

function reasons(node, actions, writes) {
  const above = node.above
    ? make("p", {}, make("small", {}, "continues "), make("button", { class: "hit", onclick: () => actions.open(node.parent) }, node.above))
    : make("p", {}, make("small", {}, "begins a thread"));
  const reason = node.reason || (node.above ? "follows the message before it" : "the first message of its thread");
  const chances = node.chances.map(({ id, chance, line }) => {
    const here = (id ?? null) === (node.parent ?? null);
    const name = id === null ? "a new thread" : line || `message ${id}`;
    return make(
      "div",
      { class: `chance${here ? " current" : ""}` },
      make("b", {}, percent(chance)),
      make("button", { disabled: id === null, title: name, onclick: () => actions.open(id) }, name),
      make("div", { class: "share", "aria-hidden": "true", "--share": `${100 * chance}%` }),
      here ? make("small", {}, "the current place") : "",
      writes && !here ? make("div", {}, make("button", { class: "move", onclick: () => actions.place(node.id, id) }, "Move there")) : "",
    );
  });
  return [
    make("p", {}, node.doubtful ? say("doubtful", "doubtful: ", "span", { class: "doubt" }) : "", reason),
    above,
    chances.length ? make("h3", {}, "How likely each place seemed when the message was written") : "",
    ...chances,
    writes && node.doubtful ? make("button", { onclick: () => actions.place(node.id, node.parent) }, "Confirm the place") : "",
  ].flat();
}

/** A text with marked words, as strings and elements. */
function marked(text, terms) {
  const words = terms.filter(Boolean).map((term) => term.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (!words.length) return [text];
  return text.split(new RegExp(`((?<![\\p{L}\\p{N}])(?:${words.join("|")})[\\p{L}]{0,3})`, "giu")).map((part, at) => (at % 2 ? make("mark", {}, part) : part));
}

/** The hits of a search. */
export function showHits(query, hits, view, actions) {
  fill(
    `${plural(hits.length, "hit")} for “${query}”`,
    null,
    hits.length ? "" : make("p", { class: "soft" }, "No message matches. Try other words, or search all conversations."),
    ...hits.map((hit) =>
      hit.rank
        ? summaryCard({ ...hit, id: hit.message, group: hit.conversation || view.owner, children: 1, title: `Summary, ${hit.why}` }, actions)
        : make(
            "button",
            { class: "hit", onclick: () => actions.openHit(hit) },
            ...hit.above.slice(-1).map((line) => make("small", {}, `after: ${line}`)),
            make("p", {}, make("b", {}, `${hit.role} `), ...marked(hit.text, hit.terms)),
            hit.below ? make("p", { class: "below" }, make("b", {}, `${hit.below.role} `), hit.below.text) : "",
            make("small", {}, `why: ${hit.why}`),
            make("small", {}, [formatTime(hit.time), hit.conversation !== view.conversation ? hit.conversation : ""].filter(Boolean).join(" · ")),
          ),
    ),
  );
}

/** Messages in doubtful places, each with the most probable other place. */
export function showDoubts(items, view, actions) {
  fill(
    `${plural(items.length, "doubtful place")}`,
    null,
    make("p", { class: "soft" }, items.length ? "The most doubtful place comes first." : "Every message seems to be where it belongs."),
    ...items.map((item) =>
      make(
        "div",
        { class: "card" },
        make("button", { class: "hit", onclick: () => actions.openHit({ ...item, conversation: view.conversation }) }, item.line),
        make("small", {}, `${percent(item.probability)}: ${item.reason}`),
        view.writes
          ? make(
              "div",
              { class: "actions" },
              make("button", { onclick: () => actions.place(item.id, parentOf(view, item.id)) }, "Keep"),
              make(
                "button",
                { onclick: () => actions.place(item.id, item.other) },
                `${item.other === null ? "New thread" : "Move to"} “${item.title}” (${percent(item.chance)})`,
              ),
            )
          : "",
      ),
    ),
  );
}

const parentOf = (view, id) => view.map.doc.parents[view.map.index.get(id)] || null;

/** The summaries of a conversation, folded. */
export function showSummaries(items, view, actions) {
  fill(
    "Summaries",
    null,
    items.length ? "" : make("p", { class: "soft" }, "There is no summary. `threadmem summarize` and MemorySystem.summarize_session write summaries."),
    ...items.map((unit) => summaryCard(unit, actions)),
  );
}

function summaryCard(unit, actions) {
  if (!unit.rank) {
    return make(
      "button",
      { class: "hit", onclick: () => actions.openHit({ id: unit.node, conversation: unit.group, rank: 0 }) },
      make("small", {}, `${unit.role === "user" ? "User" : unit.role === "ai" ? "Assistant" : unit.role}, message ${unit.node ?? ""}`),
      make("p", {}, unit.text),
    );
  }
  const inside = make("div", { hidden: true });
  const fold = make(
    "button",
    {
      "aria-expanded": "false",
      onclick: showErrors(async () => {
        if (!inside.childNodes.length) {
          const below = await read("unfold", { id: unit.id, group: unit.group, rank: unit.rank });
          inside.replaceChildren(...below.items.map((item) => summaryCard(item, actions)));
        }
        inside.hidden = !inside.hidden;
        fold.setAttribute("aria-expanded", String(!inside.hidden));
        fold.textContent = inside.hidden ? "Unfold" : "Fold";
      }),
    },
    "Unfold",
  );
  return make(
    "div",
    { class: "card" },
    make("b", {}, unit.title || "Summary"),
    make("small", {}, ` ${[unit.rank === 2 ? "long-term memory" : "", unit.from && `${formatTime(unit.from)} – ${formatTime(unit.to)}`, unit.stale ? "some messages have changed since" : ""].filter(Boolean).join(" · ")}`),
    make("p", {}, unit.text),
    unit.children ? fold : "",
    inside,
  );
}

export const isOpen = () => !panel.hidden;
export const focusPanel = () => panel.focus();
