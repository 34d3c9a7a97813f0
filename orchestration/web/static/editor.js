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
