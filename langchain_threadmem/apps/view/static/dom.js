// Elements, requests, formats, notices and dialogs. No text is parsed as HTML.

export const byId = (id) => document.getElementById(id);

/** An element with attributes, listeners (`onclick`), style properties (`--hue`) and children. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

const TAGS = new Set("p h4 h5 h6 ul ol li blockquote pre code span em strong s table thead tbody tr th td a br hr".split(" "));
const ATTRIBUTES = new Set("class href title target rel referrerpolicy start".split(" "));

/** The elements of a rendered message: texts, and lists of a tag, attributes and parts. Other tags are texts. */
export const build = (parts) =>
  parts.map((part) => {
    if (typeof part === "string") return part;
    const [tag, attributes, ...inner] = part;
    if (!TAGS.has(tag)) return build(inner);
    return make(tag, Object.fromEntries(Object.entries(attributes).filter(([name]) => ATTRIBUTES.has(name))), ...build(inner));
  });

let words = {};
/** Read the sentences that words show on hover. */
export const learnWords = async () => (words = await read("words"));

/** A word with the sentence that it shows on hover; `text` is shown in its place. */
export const say = (word, text = word, tag = "span", attributes = {}) =>
  word ? make(tag, { ...attributes, class: `word ${attributes.class ?? ""}`.trim(), title: words[word] }, text) : "";
export const meaning = (word) => words[word] ?? "";

/** An SVG element with attributes and a hue. */
export function shape(tag, attributes, hue) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (hue !== undefined) element.style.setProperty("--hue", hue);
  return element;
}

async function request(url, options = {}) {
  const response = await fetch(url, options);
  const error = `The server responded with status ${response.status}.`;
  const value = await response.json().catch(() => ({ error }));
  if (!response.ok) throw new Error(value.error || error);
  return value;
}

export function read(name, values = {}) {
  const set = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== false);
  const query = new URLSearchParams(set.map(([key, value]) => [key, value === true ? "1" : value]));
  return request(`/api/${name}?${query}`);
}

export function change(name, values) {
  const headers = { "Content-Type": "application/json" };
  return request(`/api/${name}`, { method: "POST", headers, body: JSON.stringify(values) });
}

/** The hue of a colour number; successive numbers have different hues. */
export const hueOf = (color) => Math.round(210 + color * 137.5) % 360;

export const plural = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const minute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

export function formatTime(time, short = false) {
  if (!time) return "";
  const date = new Date(time);
  if (!short) return minute.format(date);
  return date.toDateString() === new Date().toDateString() ? clock.format(date) : day.format(date);
}

/** Show a text for some seconds; screen readers announce it. */
export function notify(text, action = null) {
  const status = byId("status");
  status.replaceChildren(text, ...(action ? [make("button", { onclick: action.run }, action.name)] : []));
  clearTimeout(notify.timer);
  notify.timer = setTimeout(() => status.replaceChildren(), action ? 12000 : 5000);
}

/** A function that runs `work` and shows its errors. */
export const showErrors = (work) => async (...values) => {
  try {
    return await work(...values);
  } catch (error) {
    notify(error.message || String(error));
    return undefined;
  }
};

/** Show a dialog; resolves to the result of `accept`, or to `undefined` if the dialog is closed. */
export function showDialog(name, body, accept, button = "OK") {
  const dialog = byId("dialog");
  return new Promise((resolve) => {
    const finish = (value) => {
      dialog.onclose = null;
      dialog.close();
      resolve(value);
    };
    dialog.onclose = () => resolve(undefined);
    const form = make(
      "form",
      {
        onsubmit: (event) => {
          event.preventDefault();
          const value = accept();
          if (value !== undefined) finish(value);
        },
      },
      make("h2", { id: "dialog-name" }, name),
      body,
      make(
        "div",
        { class: "buttons" },
        make("button", { type: "button", onclick: () => finish(undefined) }, "Cancel"),
        make("button", { class: "main" }, button),
      ),
    );
    dialog.replaceChildren(form);
    dialog.showModal();
    (form.querySelector("input, textarea, [tabindex]") || form).focus();
  });
}
