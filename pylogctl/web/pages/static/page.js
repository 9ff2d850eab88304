// Enhances the pages: live values, lines, a live tail of messages, changes, keys. All of them work
// without it but what changes something. Text goes into the page by textContent only.

const REFRESH_MS = 5000;
const TAIL_ROWS = 500; // kept
const TAIL_PER_SECOND = 50; // shown; others are counted
const PAGES = { o: "/", b: "/brokers", t: "/topics", g: "/groups", h: "/health" };

const token = document.querySelector('meta[name="csrf-token"]')?.content ?? "";

/** Make an element with attributes and children; a child that is no node becomes text. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Show what would mislead the eye, such as marks of writing direction, as escapes. */
function printable(text) {
  return text.replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Call the API; an error has the detail and the hints of the problem document. */
async function call(method, path, body) {
  const options = { method, headers: { Accept: "application/json" } };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.headers["X-CSRF-Token"] = token;
    options.body = JSON.stringify(body);
  }
  const response = await fetch(path, options);
  const answer = await response.json();
  if (response.ok) return answer;
  const more = [...(answer.errors ?? []).map((one) => `${one.pointer}: ${one.message}`), ...(answer.hints ?? [])];
  throw new Error([answer.detail ?? response.statusText, ...more].join("; "));
}

const underWay = new Set();

/** Parse a page, running nothing in it, unless a request for it is under way. */
function parsed(path, use) {
  if (underWay.has(path)) return;
  underWay.add(path);
  const request = new XMLHttpRequest();
  request.open("GET", path);
  request.responseType = "document";
  request.onload = () => { if (request.status === 200 && request.response) use(request.response); };
  request.onloadend = () => underWay.delete(path);
  request.send();
}

// Live values: one request each few seconds for all that the page shows.

const live = {
  paused: false,
  elements: new Set(),
  timer: 0,
  add(one) {
    this.elements.add(one);
    if (!this.timer) this.timer = setInterval(() => this.refresh(), REFRESH_MS);
  },
  async refresh() {
    if (this.paused || document.hidden || !this.elements.size) return;
    for (const one of document.querySelectorAll("live-charts")) one.renew();
    const keys = new Set([...this.elements].map((one) => one.dataset.key));
    try {
      const query = new URLSearchParams([...keys].slice(0, 150).map((key) => ["key", key]));
      const found = await call("GET", `/values?${query}`);
      for (const one of this.elements) if (found[one.dataset.key]) one.show(found[one.dataset.key]);
    } catch {
      // values stay as they are, and the next request may succeed
      for (const one of this.elements) one.lose?.();
    }
  },
};

customElements.define("live-value", class extends HTMLElement {
  connectedCallback() { live.add(this); }
  disconnectedCallback() { live.elements.delete(this); }
  show(found) { if (this.textContent !== found.text) this.textContent = found.text; }
});

customElements.define("live-state", class extends HTMLElement {
  connectedCallback() { live.add(this); }
  disconnectedCallback() { live.elements.delete(this); }
  lose() { this.show({ word: "UNKNOWN", kind: "unknown", text: "this page does not reach its server" }); }
  show(found) {
    const [word, text] = this.children;
    if (found.look && this.dataset.look) {
      if (found.look !== this.dataset.look || word.textContent !== found.word) this.renew();
      return;
    }
    if (word.textContent === found.word && text.textContent === found.text) return; // nothing to tell
    word.className = `state state-${found.kind}`;
    word.textContent = found.word;
    text.textContent = found.text;
  }
  /** Show this state and all else that the page shows of the same look at the cluster. */
  renew() {
    parsed(location.href, (page) => {
      for (const part of document.querySelectorAll("[data-part]")) {
        const fresh = page.querySelector(`[data-part="${part.dataset.part}"]`);
        if (!fresh) continue;
        if (fresh.dataset.look) part.dataset.look = fresh.dataset.look;
        part.replaceChildren(...fresh.childNodes);
      }
    });
  }
});

customElements.define("live-charts", class extends HTMLElement {
  /** Show the charts up to now; while their values are open as a table, leave them in peace. */
  renew() {
    if (this.querySelector("details[open]")) return;
    parsed(this.dataset.url, (page) => this.replaceChildren(...page.querySelectorAll("figure")));
  }
});

customElements.define("spark-line", class extends HTMLElement {
  connectedCallback() {
    this.points = (this.dataset.points ?? "").split(" ").filter(Boolean).map(Number);
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) live.add(this);
  }
  disconnectedCallback() { live.elements.delete(this); }
  show(found) {
    const line = this.querySelector("polyline");
    if (!line) return;
    this.points = [...this.points, found.value].slice(-60);
    const top = Math.max(...this.points) || 1;
    const step = 120 / Math.max(1, this.points.length - 1);
    line.setAttribute("points", this.points.map((one, i) => `${(i * step).toFixed(1)},${(24 - (one / top) * 24).toFixed(1)}`).join(" "));
  }
});

/** Show or hide the button that stops what moves by itself. */
customElements.define("live-pause", class extends HTMLElement {
  connectedCallback() {
    const button = this.querySelector("button");
    button.hidden = false;
    button.addEventListener("click", () => {
      live.paused = !live.paused;
      button.textContent = live.paused ? "Continue" : "Pause";
      button.setAttribute("aria-pressed", String(live.paused));
    });
  }
});

// Favourites: topics with a star come first in the list; they are kept by this browser.

const favourites = new Set(JSON.parse(localStorage.getItem("favourites") ?? "[]"));

customElements.define("topic-star", class extends HTMLElement {
  connectedCallback() {
    const topic = this.dataset.topic;
    const button = element("button", { type: "button", class: "star", "aria-label": `favourite ${topic}` });
    const show = () => {
      button.textContent = favourites.has(topic) ? "★" : "☆";
      button.setAttribute("aria-pressed", String(favourites.has(topic)));
    };
    button.addEventListener("click", () => {
      if (!favourites.delete(topic)) favourites.add(topic);
      localStorage.setItem("favourites", JSON.stringify([...favourites]));
      show();
    });
    show();
    this.replaceChildren(button);
  }
});

customElements.define("copy-text", class extends HTMLElement {
  connectedCallback() {
    const button = element("button", { type: "button" }, "Copy");
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.querySelector("main pre").textContent);
      button.textContent = "Copied";
    });
    this.replaceChildren(button);
  }
});

customElements.define("favourite-topics", class extends HTMLElement {
  connectedCallback() {
    if (!favourites.size) return;
    const links = [...favourites].sort().map((topic) => {
      return element("a", { href: `/topics/${encodeURIComponent(topic)}`, class: "button" }, topic);
    });
    this.replaceChildren(element("h2", {}, "Favourites"), element("p", { class: "actions" }, ...links));
  }
});

// Messages: a live tail above what the page shows.

customElements.define("message-list", class extends HTMLElement {
  connectedCallback() {
    this.body = this.querySelector("tbody");
    this.button = element("button", { type: "button", "aria-pressed": "false" }, "Follow live");
    this.note = element("span", { class: "note", role: "status" });
    this.prepend(element("p", { class: "actions" }, this.button, this.note));
    this.button.addEventListener("click", () => (this.source ? this.stop() : this.start()));
    this.waiting = [];
    this.hiddenCount = 0;
  }
  disconnectedCallback() { this.stop(); }
  start() {
    this.source = new EventSource(this.dataset.live);
    this.source.addEventListener("message", (event) => this.waiting.push(JSON.parse(event.data)));
    this.source.addEventListener("gap", (event) => (this.hiddenCount += Number(JSON.parse(event.data).missed)));
    this.source.addEventListener("problem", (event) => this.tell(JSON.parse(event.data).detail));
    this.source.addEventListener("error", () => {
      this.tell(this.source?.readyState === EventSource.CLOSED ? "The server has ended the stream." : "Connecting again.");
    });
    this.source.addEventListener("open", () => this.tell("Following."));
    this.timer = setInterval(() => this.flush(), 1000);
    this.button.textContent = "Stop following";
    this.button.setAttribute("aria-pressed", "true");
  }
  stop() {
    if (!this.source) return;
    this.source.close();
    this.source = undefined;
    clearInterval(this.timer);
    this.flush();
    this.button.textContent = "Follow live";
    this.button.setAttribute("aria-pressed", "false");
    this.tell("Stopped; what was shown stays.");
  }
  tell(text) { this.note.textContent = text + (this.hiddenCount ? ` ${this.hiddenCount} came too fast and are not shown.` : ""); }
  flush() {
    const shown = this.waiting.slice(-TAIL_PER_SECOND);
    this.hiddenCount += this.waiting.length - shown.length;
    this.waiting = [];
    if (!shown.length) return;
    this.body.querySelector("tr.nothing")?.remove();
    this.body.prepend(...shown.reverse().map((one) => this.row(one)));
    while (this.body.rows.length > TAIL_ROWS) this.body.rows[this.body.rows.length - 1].remove();
    if (this.hiddenCount) this.tell("Following.");
  }
  row(one) {
    const place = `${this.dataset.topic}/partitions/${one.partition}/messages/${one.offset}` + (one.inner ? `?inner=${one.inner}` : "");
    const value = printable(one.problem || one.value);
    const kind = one.encoding === "text" ? "" : `${one.encoding} `;
    const cell = (label, ...children) => element("td", { "data-label": label }, ...children);
    const text = element("details", {}, element("summary", {}, element("b", {}, kind), value.slice(0, 160).replace(/\s+/g, " ") || "(empty)"),
      element("pre", {}, value), element("p", { class: "note" }, (one.sent && `Sent ${one.sent}. `) + (one.truncated ? "Open it to see the rest." : "")));
    return element("tr", { class: "new" },
      element("th", { scope: "row" }, element("a", { href: place }, one.offset)),
      cell("Partition", one.partition), cell("Size", `${one.size} B`),
      element("td", { class: "value" }, text));
  }
});

// Changes: forms that send JSON; a report stands below them.

class ChangeForm extends HTMLElement {
  connectedCallback() {
    this.form = this.querySelector("form");
    this.output = this.querySelector("output");
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.attempt(() => this.send(new FormData(this.form)));
    });
  }
  /** Run one change at a time, and show why it failed. */
  async attempt(work) {
    if (this.busy) return;
    this.busy = true;
    this.setAttribute("aria-busy", "true");
    try {
      await work();
    } catch (error) {
      this.report("problem", element("p", {}, error.message));
    }
    this.removeAttribute("aria-busy");
    this.busy = false;
  }
  report(kind, ...children) {
    this.output.replaceChildren(element("div", { class: kind, role: kind === "problem" ? "alert" : "status" }, ...children));
  }
  action(text, work) {
    const button = element("button", { type: "button", class: "main" }, text);
    button.addEventListener("click", () => this.attempt(work));
    return button;
  }
}

const RESET_TO = {
  start: () => ({ to: "start" }),
  end: () => ({ to: "end" }),
  offset: (value) => ({ to: value }),
  time: (value) => ({ to: `@${value.replace(/^@/, "")}` }),
  shift: (value) => ({ shift: value }),
};

customElements.define("group-reset", class extends ChangeForm {
  get plans() { return `/api/v1/groups/${encodeURIComponent(this.dataset.group)}/reset-plans`; }
  async send(data) {
    const body = RESET_TO[data.get("kind")](data.get("value").trim());
    if (data.get("topic")) body.topics = [data.get("topic")];
    this.show(await call("POST", this.plans, body));
  }
  show(plan) {
    const step = async (name) => this.show(await call("POST", `${this.plans}/${plan.id}/${name}`, {}));
    const moved = plan.items.filter((one) => one.difference !== 0).length;
    let text = moved ? "Nothing is changed yet." : "Nothing would change.";
    const actions = [];
    if (plan.state === "undone") text = "Undone: the group is where it was.";
    else if (plan.state === "applied") {
      text = "Applied.";
      actions.push(this.action("Undo", () => step("undo")));
    } else if (moved) actions.push(this.action("Apply", () => step("apply")));
    const rows = plan.items.map((one) => {
      const cell = (label, value) => element("td", { class: "number", "data-label": label }, value ?? "-");
      return element("tr", {}, element("th", { scope: "row" }, `${one.topic} ${one.partition}`),
        cell("Now", one.before), cell("Then", one.after), cell("Difference", one.difference === null ? "-" : String(one.difference)),
        element("td", { "data-label": "Note" }, one.note ?? ""));
    });
    const head = ["Partition", "Now", "Then", "Difference", "Note"].map((one) => element("th", { scope: "col" }, one));
    this.report("done", element("p", {}, text),
      element("table", { class: "cards" }, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)),
      element("p", { class: "actions" }, ...actions));
  }
});

customElements.define("message-producer", class extends ChangeForm {
  async send(data) {
    const item = { value: data.get("value"), encoding: "text" };
    for (const name of ["key", "partition"]) if (data.get(name)) item[name] = data.get(name);
    const { items } = await call("POST", `/api/v1/topics/${encodeURIComponent(this.dataset.topic)}/messages`, { items: [item], acks: "committed" });
    const [sent] = items;
    if (sent.problem) throw new Error(sent.problem.detail ?? String(sent.problem));
    const path = `/topics/${encodeURIComponent(this.dataset.topic)}/partitions/${sent.partition}/messages/${sent.offset}`;
    this.report("done", element("p", {}, "Sent, and in the log at ", element("a", { href: path }, `${sent.partition} offset ${sent.offset}`), "."));
  }
});

// Keys: single letters, so there is a way to turn them off, for those who speak to their computer.

const keys = document.getElementById("keys");
const usesKeys = document.getElementById("use-keys");
usesKeys.checked = localStorage.getItem("keys") !== "off";
usesKeys.addEventListener("change", () => localStorage.setItem("keys", usesKeys.checked ? "on" : "off"));
const showKeys = document.getElementById("show-keys");
showKeys.hidden = false;
showKeys.addEventListener("click", () => keys.showModal());

let isAfterG = false;
document.addEventListener("keydown", (event) => {
  const target = event.target;
  if (event.ctrlKey || event.altKey || event.metaKey || !usesKeys.checked || keys.open) return;
  if (target.matches?.("input, textarea, select")) return;
  if (isAfterG) {
    isAfterG = false;
    if (PAGES[event.key]) location.assign(PAGES[event.key]);
  } else if (event.key === "g") {
    isAfterG = true;
    setTimeout(() => (isAfterG = false), 1500);
  } else if (event.key === "/") {
    event.preventDefault();
    document.querySelector('input[type="search"]').focus();
  } else if (event.key === "?") {
    keys.showModal();
  } else if (event.key === "p") {
    document.querySelector("live-pause button")?.click();
  }
});
