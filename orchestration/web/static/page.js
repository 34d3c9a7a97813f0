// Keeps the page true: each event brings the live part anew. What is focused, selected or scrolled to stays.
"use strict";

const link = document.getElementById("link");
const live = document.getElementById("live");

function lasting(seconds) {
  if (seconds < 10) return Math.max(seconds, 0).toFixed(1) + " s";
  for (const [unit, size, smaller, part] of [["d", 86400, "h", 3600], ["h", 3600, "min", 60], ["min", 60, "s", 1]]) {
    if (seconds >= size) {
      const rest = Math.floor((seconds % size) / part);
      return Math.floor(seconds / size) + " " + unit + (rest ? " " + rest + " " + smaller : "");
    }
  }
  return Math.floor(seconds) + " s";
}

function grow() {
  for (const time of document.querySelectorAll("time[data-since]")) {
    time.textContent = lasting(Date.now() / 1000 - Number(time.dataset.since));
  }
}

// Somebody copies, or fills in a form: what they have begun is not taken away.
function isInUse() {
  const selection = document.getSelection();
  if (live.contains(selection.anchorNode) && !selection.isCollapsed) return true;
  const fields = [...live.querySelectorAll("input:not([type=hidden])")];
  return fields.some((field) => field === document.activeElement || field.value !== field.defaultValue);
}

function show(html) {
  if (isInUse()) return;
  const focused = live.contains(document.activeElement) ? document.activeElement.id : "";
  const opened = [...live.querySelectorAll("details[open]")].map((part) => part.id);
  live.innerHTML = html;
  for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  grow();
  drawAll();
}

if (link.dataset.events) {
  const events = new EventSource(link.dataset.events);
  events.onmessage = (event) => {
    if (event.lastEventId !== link.dataset.shown) show(JSON.parse(event.data));
    link.dataset.shown = event.lastEventId;
  };
  events.onopen = () => { link.textContent = "live"; link.className = ""; };
  events.onerror = () => { link.textContent = "the server does not answer; what is shown is old"; link.className = "lost"; };
}
setInterval(grow, 1000);
