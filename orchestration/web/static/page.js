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

function show(html) {
  if (live.contains(document.getSelection().anchorNode) && !document.getSelection().isCollapsed) return; // somebody copies
  const focused = live.contains(document.activeElement) ? document.activeElement.id : "";
  live.innerHTML = html;
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  grow();
}

const events = new EventSource(link.dataset.events);
events.onmessage = (event) => { show(JSON.parse(event.data)); };
events.onopen = () => { link.textContent = "live"; link.className = ""; };
events.onerror = () => { link.textContent = "the server does not answer; what is shown is old"; link.className = "lost"; };
setInterval(grow, 1000);
