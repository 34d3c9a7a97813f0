// The editor of the view of SQL: completes words as the server names them, asks with Ctrl+Enter.
"use strict";

const query = document.getElementById("query");
const words = document.getElementById("words");
let begins = 0; // where the word stands that is completed: more of it may be typed before an answer is there
let asked = 0;

function close() {
  words.hidden = true;
  words.replaceChildren();
}

function choose(word) {
  query.setRangeText(word, begins, query.selectionStart, "end");
  close();
  query.focus();
}

function select(step) {
  const all = [...words.children];
  const now = all.findIndex((item) => item.ariaSelected === "true");
  all[now].ariaSelected = "false";
  const next = all[(now + step + all.length) % all.length];
  next.ariaSelected = "true";
  next.scrollIntoView({ block: "nearest" });
}

async function complete() {
  const number = ++asked;
  const cursor = query.selectionStart;
  const characters = [...query.value.slice(0, cursor)].length; // here an emoji counts as two
  const address = new URLSearchParams({ text: query.value, cursor: characters });
  const answer = await fetch(`${query.dataset.completions}?${address}`);
  if (number !== asked || !answer.ok) return;
  const told = await answer.json();
  begins = cursor - told.word.length;
  close();
  if (told.word === "" || told.words.includes(told.word)) return;
  for (const word of told.words) {
    const item = document.createElement("li");
    item.role = "option";
    item.textContent = word;
    item.ariaSelected = String(words.children.length === 0);
    item.addEventListener("mousedown", (event) => { event.preventDefault(); choose(word); });
    words.append(item);
  }
  words.hidden = words.children.length === 0;
}

query.addEventListener("input", () => { complete().catch(close); });
query.addEventListener("blur", close);
query.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); document.getElementById("question").requestSubmit(); return; }
  if (words.hidden) return;
  if (event.key === "Escape") close();
  else if (event.key === "ArrowDown") select(1);
  else if (event.key === "ArrowUp") select(-1);
  else if (event.key === "Tab") choose([...words.children].find((item) => item.ariaSelected === "true").textContent);
  else return;
  event.preventDefault();
});

// The tables and their columns; a click puts a name where the cursor is.
function nameButton(name, kind) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = name;
  if (kind) button.title = kind;
  button.addEventListener("click", () => { query.setRangeText(name, query.selectionStart, query.selectionEnd, "end"); query.focus(); });
  return button;
}

async function listTables() {
  const names = await (await fetch("/api/tables")).json();
  for (const schema of new Set(names.map((name) => name.split(".")[0]))) {
    const part = document.createElement("details");
    part.open = schema === "gold" || schema === "silver";
    part.append(Object.assign(document.createElement("summary"), { textContent: schema }));
    for (const name of names.filter((name) => name.split(".")[0] === schema)) {
      const table = document.createElement("details");
      const summary = Object.assign(document.createElement("summary"), { textContent: name.split(".").slice(1).join(".") });
      const columns = document.createElement("ul");
      columns.append(document.createElement("li"));
      columns.firstChild.append(nameButton(name));
      table.append(summary, columns);
      table.addEventListener("toggle", async () => {
        for (const [column, kind] of await (await fetch(`/api/tables?${new URLSearchParams({ name })}`)).json()) {
          const item = document.createElement("li");
          item.append(nameButton(column, kind), ` ${kind.toLowerCase()}`);
          columns.append(item);
        }
      }, { once: true });
      part.append(table);
    }
    document.getElementById("tree").append(part);
  }
}

function queryLink(text, label) {
  return Object.assign(document.createElement("a"), { href: `/sql?${new URLSearchParams({ query: text })}`, textContent: label, title: text });
}

const past = JSON.parse(kept.get("queries") ?? "[]");
if (new URLSearchParams(location.search).get("query") && !document.getElementById("unasked")) {
  past.unshift(...past.splice(0).filter((text) => text !== query.defaultValue));
  past.unshift(query.defaultValue);
  kept.set("queries", JSON.stringify(past.slice(0, 30)));
}
for (const text of past.slice(0, 30)) {
  const item = document.createElement("li");
  item.append(queryLink(text, text.replace(/\s+/g, " ").slice(0, 80)));
  document.getElementById("history").append(item);
}
document.getElementById("save").addEventListener("submit", (event) => { event.target.dataset.name = event.target.elements.name.value; });
document.getElementById("save").addEventListener("sent", (event) => {
  const list = document.getElementById("saved");
  if (list.textContent === "") list.append("Saved: ");
  list.append(queryLink(event.target.elements.query.value, event.target.dataset.name), " ");
});
listTables();
