// Draws the charts of a view, from the JSON that its template has written beside each. A zoom stays when the view is brought anew.
"use strict";

const zooms = new Map();
let drawn = [];

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function seriesOf(line, devices) {
  const stroke = colour(`--line-${(devices.indexOf(line.device) % 8) + 1}`);
  const label = line.kind === "window" ? line.device : `${line.device}, ${line.kind}`;
  const series = { label, stroke, width: 1.5, class: line.kind, points: { size: 4 } };
  if (line.kind === "open") return { ...series, dash: [5, 4] };
  if (line.kind === "amended") return { ...series, width: 0, points: { show: true, size: 9, fill: stroke } };
  if (line.kind === "carried") return { ...series, width: 0, points: { show: true, size: 7, fill: colour("--paper"), width: 1.5 } };
  return series;
}

// Spans of time that somebody has noted something about, behind the lines.
function drawBands(plot, bands) {
  plot.ctx.save();
  for (const band of bands) {
    const left = Math.max(plot.valToPos(band.start, "x", true), plot.bbox.left);
    const right = Math.min(plot.valToPos(band.end, "x", true), plot.bbox.left + plot.bbox.width);
    if (right < left) continue;
    plot.ctx.fillStyle = colour("--line");
    plot.ctx.fillRect(left, plot.bbox.top, Math.max(right - left, 2), plot.bbox.height);
    plot.ctx.fillStyle = colour("--quiet");
    plot.ctx.fillText(band.text, left + 4, plot.bbox.top + 14);
  }
  plot.ctx.restore();
}

// The line that is nearest to the cursor at its instant.
function nearest(plot, told) {
  let best = null;
  told.lines.forEach((line, place) => {
    const at = plot.cursor.idxs?.[place + 1] ?? plot.cursor.idx;
    const value = at === null ? null : plot.data[place + 1][at];
    if (value === null || value === undefined) return;
    const distance = Math.abs(plot.valToPos(value, "y") - plot.cursor.top);
    if (best === null || distance < best.distance) best = { device: line.device, end: plot.data[0][at], distance };
  });
  return best;
}

function zoom(id, bounds) {
  const link = document.getElementById("zoomed");
  if (bounds === null) zooms.delete(id);
  else zooms.set(id, bounds);
  if (link === null) return;
  link.hidden = bounds === null;
  if (bounds === null) return;
  const address = new URL(location.href);
  address.searchParams.delete("span");
  address.searchParams.set("from", new Date(bounds.min * 1000).toISOString());
  address.searchParams.set("to", new Date(bounds.max * 1000).toISOString());
  link.href = address.pathname + address.search;
}

// Instants of the axis in UTC: the time of day, and the date where it begins.
function instants(plot, splits) {
  let day = "";
  return splits.map((seconds) => {
    const text = new Date(seconds * 1000).toISOString();
    const time = plot.scales.x.max - plot.scales.x.min < 600 ? text.slice(11, 19) : text.slice(11, 16);
    const shown = text.slice(0, 10) === day ? time : `${time}\n${text.slice(0, 10)}`;
    day = text.slice(0, 10);
    return shown;
  });
}

function draw(place) {
  const told = JSON.parse(place.dataset.plot);
  const devices = [...new Set(told.lines.map((line) => line.device))];
  const data = told.x ? [told.x, ...told.lines.map((line) => line.y)] : uPlot.join(told.lines.map((line) => [line.x, line.y]));
  const axis = { stroke: colour("--ink"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
  const first = { label: "UTC", value: (_, seconds) => (seconds === null ? "" : new Date(seconds * 1000).toISOString().slice(0, 19)) };
  const plot = new uPlot(
    {
      width: Math.max(place.clientWidth, 200),
      height: 240,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      scales: { x: { time: told.is_time !== false } },
      axes: [told.is_time === false ? axis : { ...axis, values: instants }, { ...axis, size: 70, values: (_, splits) => splits.map((value) => String(Number(value.toPrecision(6)))) }],
      series: [told.is_time === false ? { label: "x" } : first, ...told.lines.map((line) => seriesOf(line, devices))],
      cursor: { drag: { x: true, y: false }, sync: told.group ? { key: told.group } : undefined },
      hooks: {
        drawClear: [(of) => drawBands(of, told.bands)],
        setSelect: [
          (of) => {
            if (of.select.width > 2) zoom(place.id, { min: of.posToVal(of.select.left, "x"), max: of.posToVal(of.select.left + of.select.width, "x") });
          },
        ],
      },
    },
    data,
    place,
  );
  plot.over.addEventListener("dblclick", () => zoom(place.id, null));
  plot.over.addEventListener("click", () => {
    const point = told.group && nearest(plot, told);
    if (point && point.distance < 30) location.href = `/readings?${new URLSearchParams({ device: point.device, metric: told.metric, end: point.end })}`;
  });
  if (zooms.has(place.id)) plot.setScale("x", zooms.get(place.id));
  return { plot, place };
}

function drawAll() {
  for (const { plot } of drawn) plot.destroy();
  drawn = [...document.querySelectorAll(".plot")].map(draw);
}

addEventListener("resize", () => {
  for (const { plot, place } of drawn) plot.setSize({ width: Math.max(place.clientWidth, 200), height: 240 });
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
drawAll();
