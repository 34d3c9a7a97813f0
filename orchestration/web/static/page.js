// Keeps the page true: each event brings the status line and the live part anew. What is focused, selected, typed or scrolled to stays.
"use strict";

const link = document.getElementById("link");
const live = document.getElementById("live");
const zones = document.getElementById("zone");
const COLLAPSED = 12; // rows of a long table that are shown at first
const views = new Map(); // what somebody has done to a table or a form, by its key, so that it survives the next event

// Storage that a browser may refuse.
const kept = {
  get(name) { try { return localStorage.getItem(name); } catch { return null; } },
  set(name, value) { try { localStorage.setItem(name, value); } catch { /* it is forgotten with the page */ } },
};

zones.value = kept.get("zone") ?? document.body.dataset.zone;
if (zones.selectedIndex < 0) zones.value = document.body.dataset.zone;
const utcClock = clockOf("UTC");
let clock;

function clockOf(timeZone) {
  const of = { timeZone, year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit" };
  return new Intl.DateTimeFormat("sv-SE", of); // writes 2026-01-05 12:00:00
}

function setZone() {
  clock = clockOf(zones.value || undefined);
}

// An instant of seconds since 1970 in the zone that is chosen; a local time, counted as if it were in UTC, as it is.
function instant(seconds, isLocal = false) {
  return (isLocal ? utcClock : clock).format(new Date(seconds * 1000));
}

function ago(seconds) {
  if (seconds < 0 || seconds >= 86400) return null;
  const [size, unit] = [[3600, "h"], [60, "min"], [1, "s"]].find(([size]) => seconds >= size || size === 1);
  return `${Math.floor(seconds / size)} ${unit} ago`;
}

function showTimes() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const at = Date.parse(time.dateTime) / 1000;
    const shown = instant(at);
    const text = (time.className === "ago" && ago(Date.now() / 1000 - at)) || shown;
    if (time.textContent !== text) time.textContent = text;
    time.title = zones.value ? `${shown} ${zones.value}` : shown;
  }
}

function changed(form) {
  return [...form.querySelectorAll("input[name]:not([type=hidden]), textarea, select")].filter((field) =>
    field.matches("[type=checkbox]") ? field.checked !== field.defaultChecked : field.tagName !== "SELECT" && field.value !== field.defaultValue);
}

function keyOf(form) {
  return form.id || form.getAttribute("action");
}

// Somebody copies, or is in the middle of a form: what they have begun is not taken away.
function isInUse() {
  const selection = document.getSelection();
  if (live.contains(selection.anchorNode) && !selection.isCollapsed) return true;
  return live.querySelector("dialog[open], input:not([type=hidden]):focus, textarea:focus, select:focus") !== null;
}

function show(html) {
  if (isInUse()) return;
  const focused = live.contains(document.activeElement) ? document.activeElement.id : "";
  const opened = new Map([...live.querySelectorAll("details[id]")].map((part) => [part.id, part.open]));
  for (const form of live.querySelectorAll("form")) views.set(keyOf(form), changed(form).map((field) => [field.name, field.value, field.checked]));
  live.innerHTML = html;
  for (const [id, open] of opened) document.getElementById(id)?.toggleAttribute("open", open);
  for (const form of live.querySelectorAll("form")) {
    for (const [name, value, checked] of views.get(keyOf(form)) ?? []) {
      const field = [...form.elements].find((field) => field.name === name && (field.type !== "checkbox" || field.value === value));
      if (field?.type === "checkbox") field.checked = checked;
      else if (field) field.value = value;
    }
  }
  dress();
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

// Cards on a phone have the heads of columns beside the cells; long tables are collapsed, and filtered by typing.
function dressTable(table, place) {
  const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent);
  for (const row of table.tBodies[0].rows) [...row.cells].forEach((cell, index) => { cell.dataset.label = heads[index] ?? ""; });
  const rows = [...table.tBodies[0].rows];
  const key = `${location.pathname}#${table.closest("section")?.getAttribute("aria-labelledby")}/${place}`;
  if (rows.length <= COLLAPSED || table.dataset.dressed) return;
  table.dataset.dressed = "1";
  const state = views.get(key) ?? { text: "", open: false };
  const bar = document.createElement("p");
  const filter = Object.assign(document.createElement("input"), { type: "search", value: state.text, id: `filter-${place}`, placeholder: `filter ${rows.length} rows`, ariaLabel: "Filter the rows" });
  const more = Object.assign(document.createElement("button"), { type: "button", className: "quiet", id: `more-${place}` });
  bar.className = "filter";
  bar.append(filter, more);
  table.parentElement.before(bar);
  const apply = () => {
    Object.assign(state, { text: filter.value });
    views.set(key, state);
    const fitting = rows.filter((row) => row.textContent.toLowerCase().includes(state.text.toLowerCase()));
    rows.forEach((row) => { row.hidden = true; });
    fitting.slice(0, state.open ? undefined : COLLAPSED).forEach((row) => { row.hidden = false; });
    more.hidden = fitting.length <= COLLAPSED;
    more.textContent = state.open ? `The first ${COLLAPSED}` : `All ${fitting.length}`;
  };
  filter.addEventListener("input", apply);
  more.addEventListener("click", () => { state.open = !state.open; apply(); });
  apply();
}

function dress() {
  for (const field of live.querySelectorAll("input[name=author]")) {
    field.defaultValue = kept.get("author") ?? "";
  }
  [...live.querySelectorAll(".wide table")].forEach(dressTable);
  showTimes();
  if (window.drawAll) drawAll();
}

// What a form is told stays beside the field that it is about, and nothing that was typed is lost.
async function send(form, button) {
  const author = form.elements.author?.value;
  if (author) kept.set("author", author);
  const said = form.querySelector("output") ?? form.appendChild(document.createElement("output"));
  const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form, button)), headers: { Accept: "application/json" } });
  const { error, field } = await answer.json();
  for (const other of form.elements) other.removeAttribute("aria-invalid");
  said.className = error ? "bad" : "good";
  said.textContent = error ?? "Done";
  const wrong = error && field && form.elements[field];
  if (wrong) {
    wrong.setAttribute("aria-invalid", "true");
    wrong.after(said);
    wrong.focus();
  }
  if (error) return;
  form.reset();
  form.closest("dialog")?.close();
  if (form.dataset.stays === undefined) location.reload();
  else form.dispatchEvent(new Event("sent"));
}

live.addEventListener("submit", (event) => {
  if (event.target.method !== "post") return;
  event.preventDefault();
  send(event.target, event.submitter).catch(() => event.target.submit());
});
live.addEventListener("click", (event) => {
  const button = event.target.closest("[data-dialog]");
  if (!button) return event.target.closest("[data-close]")?.closest("dialog").close();
  const dialog = document.getElementById(button.dataset.dialog);
  for (const field of dialog.querySelectorAll("[name]")) {
    const value = button.dataset[field.name.replace(/_(.)/g, (_, letter) => letter.toUpperCase())];
    if (value !== undefined) field.value = value;
  }
  dialog.querySelector(".about").textContent = button.dataset.about ?? "";
  dialog.showModal();
});
zones.addEventListener("change", () => { kept.set("zone", zones.value); setZone(); dress(); });

const events = new EventSource(link.dataset.events);
events.onmessage = (event) => {
  const news = JSON.parse(event.data);
  if (news.status !== undefined) document.getElementById("status").innerHTML = news.status;
  for (const tab of news.counts ? document.querySelectorAll("nav[aria-label=Views] a") : []) tab.querySelector(".count").textContent = news.counts[tab.getAttribute("href")] || "";
  if (news.live !== undefined && event.lastEventId !== link.dataset.shown) show(news.live);
  link.dataset.shown = event.lastEventId;
  showTimes();
};
events.onopen = () => { link.textContent = "live"; link.className = ""; };
events.onerror = () => { link.textContent = "the server does not answer; what is shown is old"; link.className = "lost"; };
setInterval(showTimes, 1000);
document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
setZone();
dress();
