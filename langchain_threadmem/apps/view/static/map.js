// The map of a conversation: a row for each message and a lane for each thread. Only visible rows are elements.

import { formatTime, hueOf, make, meaning, notify, say, shape } from "./dom.js";

const ROW = 32;
const AROUND = 8;
const LIVE = 1, DOUBTFUL = 2, CALLS = 4, NEWER = 8, ASIDE = 16;
const KINDS = ["user", "assistant", "other"];
const NAMES = ["User", "Assistant", "Other"];

export class MessageMap {
  /**
   * `load(ids)` returns the lines of messages. The map calls `select(id)` and `open(id)` after a selection,
   * `place(id, parent)` after a drop, and `drag(active)` when a drag begins or ends.
   */
  constructor(root, { load, select, open, place, drag }) {
    Object.assign(this, { root, load, select, open, place, drag });
    this.lines = new Map();
    this.requested = new Set();
    this.selected = null;
    this.doc = null;
    this.drawn = new Map();
    this.all = make("div", { class: "all", role: "presentation" });
    root.append(this.all);
    root.addEventListener("scroll", () => this.later(), { passive: true });
    root.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.later()).observe(root);
  }

  /** Draw a tree; `thread`, a path of ids, limits the rows. */
  show(doc, thread = null) {
    const changed = this.doc?.conversation !== doc.conversation;
    const atEnd = this.root.scrollTop + this.root.clientHeight >= this.all.offsetHeight - 2 * ROW;
    if (changed || this.doc?.version.split(".")[1] !== doc.version.split(".")[1]) this.lines.clear();
    this.doc = doc;
    this.index = new Map(doc.ids.map((id, at) => [id, at]));
    const among = thread && new Set(thread);
    this.rows = [];
    doc.ids.forEach((id, at) => (among === null || among.has(id)) && this.rows.push(at));
    this.rowOf = new Map(this.rows.map((at, row) => [doc.ids[at], row]));
    this.first = new Map();
    doc.strands.forEach((strand, at) => this.first.has(strand) || this.first.set(strand, at));
    this.active = new Set();
    for (let id = doc.tip; id && this.index.has(id); id = doc.parents[this.index.get(id)]) this.active.add(id);
    this.below = new Map();
    doc.ids.forEach((id, at) => {
      const parent = doc.parents[at];
      if (!this.below.has(parent)) this.below.set(parent, []);
      this.below.get(parent).push(id);
    });
    this.levels = [];
    for (const [strand, at] of [...this.first].sort((a, b) => a[1] - b[1])) {
      const above = this.index.get(doc.parents[at]);
      this.levels[strand] = above === undefined ? 1 : this.levels[doc.strands[above]] + 1;
    }
    const lanes = 1 + Math.max(0, ...doc.lanes);
    const most = Math.max(40, Math.min(190, this.root.clientWidth * 0.22));
    this.step = Math.max(2, Math.min(16, most / lanes));
    this.left = Math.ceil(this.step * (lanes - 1) + 26);
    this.all.style.height = `${this.rows.length * ROW}px`;
    for (const row of this.drawn.values()) row.remove();
    this.drawn.clear();
    if (this.selected !== null && !this.rowOf.has(this.selected)) this.selected = null;
    if (changed || atEnd) this.root.scrollTop = this.rows.length * ROW;
    this.draw();
  }

  later() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  draw() {
    if (!this.doc) return;
    const from = Math.max(0, Math.floor(this.root.scrollTop / ROW) - AROUND);
    const to = Math.min(this.rows.length, Math.ceil((this.root.scrollTop + this.root.clientHeight) / ROW) + AROUND);
    for (const [row, element] of this.drawn) {
      if (row < from || row >= to) {
        element.remove();
        this.drawn.delete(row);
      }
    }
    for (let row = from; row < to; row++) {
      if (!this.drawn.has(row)) {
        const element = this.rowElement(row);
        const next = this.drawn.get(row + 1);
        this.all.insertBefore(element, next ?? null);
        this.drawn.set(row, element);
      }
    }
    this.picture(from, to);
    const missing = [];
    for (let row = from; row < to; row++) {
      const id = this.doc.ids[this.rows[row]];
      if (!this.lines.has(id) && !this.requested.has(id)) missing.push(id);
    }
    if (missing.length) this.fetch(missing);
  }

  async fetch(ids) {
    const doc = this.doc;
    ids.forEach((id) => this.requested.add(id));
    try {
      const lines = await this.load(ids);
      if (doc.conversation !== this.doc.conversation) return;
      for (const line of lines) this.lines.set(line.id, line);
    } catch (error) {
      notify(error.message);
      return;
    } finally {
      ids.forEach((id) => this.requested.delete(id));
    }
    for (const id of ids) {
      const row = this.rowOf.get(id);
      const old = row === undefined ? undefined : this.drawn.get(row);
      if (old) {
        const element = this.rowElement(row);
        old.replaceWith(element);
        this.drawn.set(row, element);
      }
    }
  }

  rowElement(row) {
    const { doc } = this;
    const at = this.rows[row];
    const id = doc.ids[at];
    const strand = doc.strands[at];
    const flags = doc.flags[at];
    const kind = KINDS[doc.roles[at]];
    const line = this.lines.get(id);
    const before = row > 0 ? doc.strands[this.rows[row - 1]] : -1;
    const opens = this.first.get(strand) === at;
    const state = flags & ASIDE ? "aside" : flags & LIVE ? "" : line?.word || "replaced";
    const topic = before !== strand && !(flags & ASIDE) ? doc.topics[strand] : "";
    const versions = kind === "user" ? "edited" : "answered again";
    const marks = [
      flags & DOUBTFUL ? say("doubtful", "?", "span", { class: "mark" }) : "",
      flags & NEWER ? say(versions, kind === "user" ? "✎" : "↻", "span", { class: "soft" }) : "",
      id === doc.tip ? say("active", "active", "span", { class: "soft now" }) : "",
      flags & ASIDE ? say("aside", "aside", "span", { class: "soft now" }) : "",
    ];
    const description = [
      line?.role ?? NAMES[doc.roles[at]],
      `message ${id}`,
      topic && (opens ? `new thread ${topic}` : `thread ${topic}`),
      flags & DOUBTFUL && "doubtful place",
      flags & NEWER && versions,
      id === doc.tip && "active",
      state,
      line?.line,
    ];
    const element = make(
      "div",
      {
        class: `row ${kind}${state && (flags & ASIDE ? " aside" : " replaced")}`,
        id: `row-${id}`,
        role: "treeitem",
        draggable: flags & LIVE && this.writes ? "true" : null,
        "aria-level": this.levels[strand],
        "aria-posinset": row + 1,
        "aria-setsize": this.rows.length,
        "aria-selected": String(id === this.selected),
        "aria-label": description.filter(Boolean).join(", "),
        title: state ? meaning(state) : null,
        "--hue": hueOf(doc.colors[at]),
        onclick: () => {
          this.pick(id);
          this.open(id);
        },
        ondragstart: (event) => {
          event.dataTransfer.setData("text/plain", String(id));
          event.dataTransfer.effectAllowed = "move";
          this.dragged = id;
          setTimeout(() => this.dragged && this.drag(true)); // A change of the page at the start would end the drag.
        },
        ondragend: () => {
          this.dragged = null;
          this.drag(false);
        },
        ondragover: (event) => {
          if (this.dragged && this.dragged !== id && flags & LIVE && !(flags & CALLS)) {
            event.preventDefault();
            element.classList.add("over");
          }
        },
        ondragleave: () => element.classList.remove("over"),
        ondrop: (event) => {
          event.preventDefault();
          element.classList.remove("over");
          if (this.dragged) this.place(this.dragged, id);
        },
      },
      make("span", { class: "number" }, String(id)),
      topic ? make("span", { class: opens ? "topic" : "topic again", title: topic }, topic) : "",
      ...marks,
      make("span", { class: "text" }, line ? line.line || "(no text)" : "…"),
      make("time", { datetime: line?.time ?? "" }, formatTime(line?.time, true)),
    );
    element.style.top = `${row * ROW}px`;
    element.style.paddingLeft = `${this.left}px`;
    return element;
  }

  spot(row) {
    return [13 + this.step * this.doc.lanes[this.doc.strands[this.rows[row]]], row * ROW + ROW / 2];
  }

  /** The lines and dots of the visible rows. */
  picture(from, to) {
    const { doc } = this;
    const top = from * ROW;
    const svg = shape("svg", { width: this.left, height: (to - from) * ROW, "aria-hidden": "true" });
    svg.style.top = `${top}px`;
    const dots = [];
    for (let row = 0; row < this.rows.length; row++) {
      const at = this.rows[row];
      const id = doc.ids[at];
      const parent = this.rowOf.get(doc.parents[at]);
      const hue = hueOf(doc.colors[at]);
      const [x, y] = this.spot(row);
      if (parent !== undefined && row >= from && parent < to) {
        const [above, start] = this.spot(parent);
        const bend = above === x ? "" : `C${above} ${start - top + ROW * 0.7} ${x} ${start - top + ROW * 0.3} ${x} ${start - top + ROW}`;
        const current = this.active.has(id) ? " current" : "";
        const doubt = doc.flags[at] & DOUBTFUL ? " doubt" : "";
        svg.append(shape("path", { class: `edge${current}${doubt}`, d: `M${above} ${start - top}${bend}L${x} ${y - top}` }, hue));
      }
      if (row >= from && row < to) {
        const size = doc.roles[at] === 2 ? 3 : Math.min(5, Math.max(3, this.step / 2));
        if (id === doc.tip) dots.push(shape("circle", { class: "ring", cx: x, cy: y - top, r: size + 3.5 }));
        dots.push(shape("circle", { class: `spot ${KINDS[doc.roles[at]]}`, cx: x, cy: y - top, r: size }, hue));
      }
    }
    svg.append(...dots);
    this.svg?.remove();
    this.svg = svg;
    this.all.append(svg);
  }

  /** Select a message and scroll to it. */
  pick(id) {
    const row = this.rowOf?.get(id);
    const old = this.drawn.get(this.rowOf?.get(this.selected));
    old?.setAttribute("aria-selected", "false");
    this.selected = row === undefined ? null : id;
    if (row === undefined) {
      this.root.removeAttribute("aria-activedescendant");
      return;
    }
    const y = row * ROW;
    if (y < this.root.scrollTop + ROW) this.root.scrollTop = y - ROW * 2;
    else if (y > this.root.scrollTop + this.root.clientHeight - 2 * ROW) {
      this.root.scrollTop = y - this.root.clientHeight + 3 * ROW;
    }
    this.draw();
    this.drawn.get(row)?.setAttribute("aria-selected", "true");
    this.root.setAttribute("aria-activedescendant", `row-${id}`);
    this.select(id);
  }

  key(event) {
    if (!this.rows?.length || event.target !== this.root || event.ctrlKey || event.metaKey || event.altKey) return;
    const last = this.rows.length - 1;
    const page = Math.max(1, Math.floor(this.root.clientHeight / ROW) - 2);
    const current = this.rowOf.get(this.selected);
    const id = this.selected;
    const strand = current === undefined ? -1 : this.doc.strands[this.rows[current]];
    const children = (this.below.get(id) ?? []).filter((child) => this.rowOf.has(child));
    const next = children.find((child) => this.doc.strands[this.index.get(child)] === strand) ?? children[0];
    const moves = {
      ArrowDown: () => (current === undefined ? last : Math.min(last, current + 1)),
      ArrowUp: () => (current === undefined ? last : Math.max(0, current - 1)),
      ArrowLeft: () => (current === undefined ? last : this.rowOf.get(this.doc.parents[this.rows[current]])),
      ArrowRight: () => (current === undefined ? last : this.rowOf.get(next)),
      Home: () => 0,
      End: () => last,
      PageDown: () => Math.min(last, (current ?? last) + page),
      PageUp: () => Math.max(0, (current ?? last) - page),
    };
    if (moves[event.key]) {
      event.preventDefault();
      const row = moves[event.key]();
      if (row !== undefined) this.pick(this.doc.ids[this.rows[row]]);
    } else if ((event.key === "Enter" || event.key === " ") && id !== null) {
      event.preventDefault();
      this.open(id, true);
    }
  }

  /** The path of ids from the root to a message. */
  path(id) {
    const path = [];
    for (let at = this.index.get(id); at !== undefined; at = this.index.get(this.doc.parents[at])) path.push(this.doc.ids[at]);
    return path.reverse();
  }

  /** The message of a thread that a message could continue: the last answer before it, else the last message. */
  endBefore(tip, id) {
    const before = this.index.get(id);
    const path = this.path(tip).filter((candidate) => {
      const at = this.index.get(candidate);
      return at < before && this.doc.flags[at] & LIVE && !(this.doc.flags[at] & CALLS);
    });
    return path.findLast((candidate) => this.doc.roles[this.index.get(candidate)] === 1) ?? path.at(-1);
  }

  isLive(id) {
    return Boolean(this.doc.flags[this.index.get(id)] & LIVE);
  }

  topicOf(id) {
    const at = this.index.get(id);
    return at === undefined ? "" : this.doc.topics[this.doc.strands[at]];
  }

  hueOf(id) {
    const at = this.index.get(id);
    return at === undefined ? 210 : hueOf(this.doc.colors[at]);
  }
}
