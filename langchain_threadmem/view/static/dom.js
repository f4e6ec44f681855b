// Elements, requests and texts. All text is set as text: nothing here reads HTML.

export const byId = (id) => document.getElementById(id);

/** An element with attributes, listeners (`onclick`), style properties (`--hue`) and children. */
export function make(tag, attributes = {}, ...children) {
  const found = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) found.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) found.style.setProperty(name, value);
    else if (name === "value") found.value = value;
    else found.setAttribute(name, value === true ? "" : value);
  }
  found.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return found;
}

/** A shape of an SVG picture. */
export function shape(tag, attributes, hue) {
  const found = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) found.setAttribute(name, value);
  if (hue !== undefined) found.style.setProperty("--hue", hue);
  return found;
}

async function answer(request) {
  const response = await request;
  const value = await response.json().catch(() => ({ error: `The server answered ${response.status}.` }));
  if (!response.ok) throw new Error(value.error || `The server answered ${response.status}.`);
  return value;
}

export function read(name, values = {}) {
  const given = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== false);
  const query = new URLSearchParams(given.map(([key, value]) => [key, value === true ? "1" : value]));
  return answer(fetch(`/api/${name}?${query}`));
}

export function change(name, values) {
  const headers = { "Content-Type": "application/json" };
  return answer(fetch(`/api/${name}`, { method: "POST", headers, body: JSON.stringify(values) }));
}

/** The hue of a strand; neighbours differ, for any number of strands. */
export const hueOf = (strand) => Math.round(210 + strand * 137.5) % 360;

export const plural = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const minute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

export function whenOf(time, short = false) {
  if (!time) return "";
  const date = new Date(time);
  if (!short) return minute.format(date);
  return date.toDateString() === new Date().toDateString() ? clock.format(date) : day.format(date);
}

/** Show a text for some seconds, and tell it to screen readers. */
export function tell(text, action = null) {
  const status = byId("status");
  status.replaceChildren(text, ...(action ? [make("button", { onclick: action.run }, action.name)] : []));
  clearTimeout(tell.timer);
  tell.timer = setTimeout(() => status.replaceChildren(), action ? 12000 : 5000);
}

/** Run what may fail; an error is shown. */
export const trying = (work) => async (...given) => {
  try {
    return await work(...given);
  } catch (error) {
    tell(error.message || String(error));
    return undefined;
  }
};

/** Ask in a dialog; resolves to the result of `accept`, or to `undefined`. */
export function ask(name, body, accept, word = "OK") {
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
        { class: "ends" },
        make("button", { type: "button", onclick: () => finish(undefined) }, "Cancel"),
        make("button", { class: "main" }, word),
      ),
    );
    dialog.replaceChildren(form);
    dialog.showModal();
    (form.querySelector("input, textarea, [tabindex]") || form).focus();
  });
}
