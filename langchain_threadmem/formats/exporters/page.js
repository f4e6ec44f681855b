"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const main = byId("messages"), box = byId("search"), threads = byId("threads"), hits = byId("hits");
  const status = byId("status"), only = byId("only"), pane = byId("map"), space = byId("rows");
  const canvas = pane.querySelector("canvas");
  // Each row is a message: its number, the row of its parent, lane, hue, and marks.
  const rows = JSON.parse(pane.dataset.rows);
  const rowOf = new Map(rows.map((row, n) => [row[0], n]));
  const USER = 1, OTHER = 2, REPLACED = 4, DOUBTFUL = 8, ACTIVE = 16;
  const article = (n) => byId("n" + rows[n][0]);
  let current = -1;

  // Navigation

  function reveal(element) {
    for (let fold = element.closest(".branch"); fold; fold = fold.parentElement.closest(".branch")) fold.open = true;
  }
  function go(element) {
    const n = rowOf.get(Number(element.id.slice(1)));
    if (only.checked && !element.classList.contains("on")) choose(linkOf(n));
    reveal(element);
    element.tabIndex = -1;
    // The heights of messages out of view are estimates until they are drawn.
    element.scrollIntoView();
    requestAnimationFrame(() => { element.scrollIntoView(); element.focus({ preventScroll: true }); });
    mark(n);
  }
  function fromHash() {
    const element = /^#n\d+$/.test(location.hash) && byId(location.hash.slice(1));
    if (element) go(element);
  }
  addEventListener("hashchange", fromHash);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#n']");
    const element = link && byId(link.hash.slice(1));
    if (!element) return;
    event.preventDefault();
    if (link.dataset.tip) choose(link);
    if (location.hash === link.hash) go(element);
    else location.hash = link.hash;
  });

  // Threads

  const links = [...threads.querySelectorAll("a")];
  // The link of the most recently used thread that a row belongs to.
  let nearest;
  function linkOf(n) {
    if (!nearest) {
      nearest = new Map();
      for (const link of links)
        for (let up = rowOf.get(Number(link.dataset.tip)); up >= 0 && !nearest.has(up); up = rows[up][1]) nearest.set(up, link);
    }
    return nearest.get(n);
  }
  function choose(link) {
    for (const other of links) if (other !== link) other.removeAttribute("aria-current");
    link?.setAttribute("aria-current", "true");
    only.disabled = !link;
    if (!link) only.checked = false;
    filter();
  }
  function filter() {
    main.classList.toggle("only", only.checked);
    for (const shown of main.querySelectorAll(".on")) shown.classList.remove("on");
    if (!only.checked) return;
    const link = links.find((link) => link.hasAttribute("aria-current"));
    for (let n = rowOf.get(Number(link.dataset.tip)); n >= 0; n = rows[n][1]) {
      const element = article(n);
      element.classList.add("on");
      for (let fold = element.closest(".branch"); fold && !fold.classList.contains("on"); fold = fold.parentElement.closest(".branch")) {
        fold.classList.add("on");
        fold.open = true;
      }
    }
  }
  only.addEventListener("change", () => {
    filter();
    const shown = only.checked ? main.querySelector("article.on") : rows[current] && article(current);
    if (shown) shown.scrollIntoView();
  });
  const folds = byId("folds");
  folds.addEventListener("click", () => {
    const open = folds.dataset.open !== "true";
    for (const fold of main.querySelectorAll(".branch")) fold.open = open;
    folds.dataset.open = open;
    folds.textContent = open ? "Close all" : "Open all";
  });

  // Search

  let texts, waiting;
  function search() {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    hits.hidden = !words.length;
    threads.parentElement.hidden = !!words.length;
    hits.replaceChildren();
    status.textContent = "";
    if (!words.length) return;
    texts ??= rows.map((_, n) => article(n).querySelector(".text").textContent);
    const found = [];
    for (let n = rows.length - 1; n >= 0; n--) {
      const text = texts[n].toLowerCase();
      if (words.every((word) => text.includes(word))) found.push(n);
    }
    status.textContent = `${found.length.toLocaleString("en")} message${found.length === 1 ? "" : "s"} found` + (found.length > 100 ? ", the newest 100 shown" : "");
    hits.append(...found.slice(0, 100).map((n) => hit(n, words)));
  }
  function hit(n, words) {
    const item = document.createElement("li"), link = document.createElement("a"), name = document.createElement("b");
    name.textContent = `${article(n).querySelector("h3").textContent} ${rows[n][0]}: `;
    const lower = texts[n].toLowerCase(), text = texts[n];
    const start = Math.max(0, Math.min(...words.map((word) => lower.indexOf(word))) - 30);
    link.href = "#n" + rows[n][0];
    link.append(name, start ? "…" : "");
    let at = start;
    const end = Math.min(text.length, start + 140);
    while (at < end) {
      const next = words.map((word) => [lower.indexOf(word, at), word.length]).filter(([place]) => place >= 0 && place < end).sort((a, b) => a[0] - b[0])[0];
      if (!next) break;
      const marked = document.createElement("mark");
      marked.textContent = text.slice(next[0], next[0] + next[1]);
      link.append(text.slice(at, next[0]), marked);
      at = next[0] + next[1];
    }
    link.append(text.slice(at, Math.max(at, end)), end < text.length ? "…" : "");
    // A question is shown with its answer.
    const answer = rows[n][4] & USER ? rows.findIndex((row) => row[1] === n && !(row[4] & (USER | OTHER | REPLACED))) : -1;
    if (answer >= 0) {
      const below = document.createElement("small");
      below.textContent = `${article(answer).querySelector("h3").textContent}: ${texts[answer].slice(0, 160)}${texts[answer].length > 160 ? "…" : ""}`;
      link.append(below);
    }
    item.append(link);
    return item;
  }
  box.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(search, 80); });

  // Keyboard

  const walker = document.createTreeWalker(main, NodeFilter.SHOW_ELEMENT, (node) => {
    const up = node.parentElement;
    const isSummary = node.tagName === "SUMMARY";
    if (up.classList.contains("branch") && !up.open && !isSummary) return NodeFilter.FILTER_REJECT;
    const isItem = node.tagName === "ARTICLE" || node.classList.contains("branch");
    if (main.classList.contains("only") && isItem && !node.classList.contains("on")) return NodeFilter.FILTER_REJECT;
    if (up.tagName === "ARTICLE") return NodeFilter.FILTER_REJECT;
    return node.tagName === "ARTICLE" || isSummary ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_SKIP;
  });
  function move(item, forward) {
    walker.currentNode = item;
    const next = forward ? walker.nextNode() : walker.previousNode();
    if (!next) return;
    if (next.tagName === "ARTICLE") next.tabIndex = -1;
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: next.offsetHeight > innerHeight / 2 ? "start" : "nearest" });
    if (next.tagName === "ARTICLE") mark(rowOf.get(Number(next.id.slice(1))));
  }
  function inMain(item, key) {
    const fold = item.closest(".branch"), isSummary = item.tagName === "SUMMARY", space = item.getBoundingClientRect();
    if (key === "ArrowDown" || key === "ArrowUp") {
      // A message that is taller than the window is scrolled first.
      if (key === "ArrowDown" ? space.bottom > innerHeight : space.top < canvas.getBoundingClientRect().top) return false;
      move(item, key === "ArrowDown");
    } else if (key === "ArrowRight" && isSummary && !fold.open) fold.open = true;
    else if (key === "ArrowRight" && isSummary) move(item, true);
    else if (key === "ArrowLeft" && isSummary && fold.open) fold.open = false;
    else if (key === "ArrowLeft") (isSummary ? fold.parentElement.closest(".branch") : fold)?.querySelector("summary").focus();
    else if (key === "Enter" && !isSummary && item.querySelector("details")) item.querySelector("details").toggleAttribute("open");
    else return false;
    return true;
  }
  function inList(link, key) {
    if (key !== "ArrowDown" && key !== "ArrowUp") return false;
    const step = key === "ArrowDown" ? "nextElementSibling" : "previousElementSibling";
    const next = link.parentElement[step]?.querySelector("a");
    if (next) next.focus();
    else if (key === "ArrowUp") box.focus();
    return true;
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key, at = document.activeElement ?? document.body;
    let done = false;
    if (at === box) {
      const list = hits.hidden ? threads : hits;
      if (key === "Escape") { box.value = ""; search(); done = true; }
      else if (key === "Enter" || key === "ArrowDown") {
        if (box.value) { clearTimeout(waiting); search(); }
        const first = list.querySelector("a");
        if (first) key === "Enter" && box.value ? first.click() : first.focus();
        done = true;
      }
    } else if (key === "/" && !(at.tagName === "INPUT" && at.type !== "checkbox")) { box.focus(); box.select(); done = true; }
    else if (at.matches("#threads a, #hits a")) done = inList(at, key);
    else if (at.matches("article, .branch > summary")) done = inMain(at, key);
    else if (at === main && key === "ArrowDown") { move(main, true); done = true; }
    if (done) event.preventDefault();
  });

  // The map: a lane for each thread, a row for each message; only the rows in view are drawn

  const pen = canvas.getContext("2d");
  const lanes = 1 + Math.max(0, ...rows.map((row) => row[2]));
  let pitch, gap, scheduled = false;
  function mark(n) {
    current = n;
    const y = n * pitch, top = pane.scrollTop, height = pane.clientHeight;
    if (y < top + 40 || y > top + height - 60) pane.scrollTop = y - height / 2;
    draw();
  }
  function measure() {
    const height = pane.clientHeight;
    if (!height) return;
    pitch = Math.max(12, Math.min(22, (height - 24) / Math.max(rows.length, 1)));
    gap = Math.max(2, Math.min(14, Math.max(pane.clientWidth / 2, pane.clientWidth - 150) / lanes));
    space.style.height = `${Math.max(height, rows.length * pitch + 24)}px`;
    draw();
  }
  function draw() {
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(() => { scheduled = false; paint(); });
  }
  function paint() {
    const scale = devicePixelRatio, width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width || !height || !pitch) return;
    canvas.width = width * scale;
    canvas.height = height * scale;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    const colors = getComputedStyle(document.documentElement);
    const [ink, here, doubt, card] = ["--ink", "--here", "--doubt", "--card"].map((name) => colors.getPropertyValue(name));
    const top = pane.scrollTop, x = (n) => 12 + gap * rows[n][2], y = (n) => 14 + pitch * n - top;
    const first = Math.floor((top - 14) / pitch) - 1, last = Math.ceil((top + height) / pitch) + 1;
    pen.lineWidth = 1.6;
    for (let n = 0; n < rows.length; n++) {
      const parent = rows[n][1];
      if (parent < 0 || Math.min(n, parent) > last || Math.max(n, parent) < first) continue;
      pen.strokeStyle = `hsl(${rows[n][3]} 52% 52% / ${rows[n][4] & REPLACED ? 0.4 : 1})`;
      pen.setLineDash(rows[n][4] & DOUBTFUL ? [4, 3] : []);
      const bend = Math.min(y(parent) + pitch, y(n));
      pen.beginPath();
      pen.moveTo(x(parent), y(parent));
      pen.bezierCurveTo(x(parent), (y(parent) + bend) / 2, x(n), (y(parent) + bend) / 2, x(n), bend);
      pen.lineTo(x(n), y(n));
      pen.stroke();
    }
    pen.setLineDash([]);
    const size = Math.min(4.5, gap / 2 + 0.6);
    for (let n = Math.max(0, first); n <= Math.min(last, rows.length - 1); n++) {
      const [, , , hue, marks] = rows[n];
      pen.globalAlpha = marks & REPLACED ? 0.4 : 1;
      pen.strokeStyle = `hsl(${hue} 52% 52%)`;
      pen.fillStyle = marks & USER ? pen.strokeStyle : card;
      pen.beginPath();
      pen.arc(x(n), y(n), marks & OTHER ? size * 0.6 : size, 0, 7);
      pen.fill();
      pen.stroke();
      pen.globalAlpha = 1;
      if (n === current || marks & (ACTIVE | DOUBTFUL)) {
        pen.strokeStyle = n === current ? here : marks & DOUBTFUL ? doubt : ink;
        pen.beginPath();
        pen.arc(x(n), y(n), size + 3, 0, 7);
        pen.stroke();
      }
    }
    const left = 12 + gap * lanes;
    if (width - left < 60) return;
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    for (const link of links) {
      const n = rowOf.get(Number(link.hash.slice(2)));
      if (n < first || n > last) continue;
      pen.fillStyle = ink;
      const title = link.querySelector("b").textContent, room = (width - left) / 6.2;
      pen.fillText(title.length > room ? title.slice(0, room - 1) + "…" : title, left, y(n));
    }
  }
  const rowAt = (event) => Math.round((event.clientY - canvas.getBoundingClientRect().top + pane.scrollTop - 14) / pitch);
  canvas.addEventListener("click", (event) => {
    const n = rowAt(event);
    if (rows[n]) location.hash === "#n" + rows[n][0] ? go(article(n)) : (location.hash = "#n" + rows[n][0]);
  });
  canvas.addEventListener("mousemove", (event) => {
    const n = rowAt(event);
    canvas.title = rows[n] ? `${rows[n][0]}: ${article(n).querySelector(".text").textContent.slice(0, 120)}` : "";
  });
  pane.addEventListener("scroll", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("resize", measure);
  // The map follows while the text is scrolled.
  let following = false;
  addEventListener("scroll", () => {
    if (following) return;
    following = true;
    requestAnimationFrame(() => {
      following = false;
      let shown = document.activeElement;
      const { top, bottom } = shown.getBoundingClientRect();
      if (shown.tagName !== "ARTICLE" || bottom < 60 || top > innerHeight) {
        const { left, width } = main.getBoundingClientRect();
        shown = document.elementFromPoint(left + width / 2, canvas.getBoundingClientRect().top + 30)?.closest("article");
      }
      if (shown && pitch) mark(rowOf.get(Number(shown.id.slice(1))));
    });
  }, { passive: true });

  for (const element of document.querySelectorAll(".script")) element.hidden = false;
  if (matchMedia("(max-width: 800px)").matches) byId("list").open = false;
  measure();
  fromHash();
})();
