// Draws the charts of a view, from the JSON that its template has written beside each. A zoom stays when the view is brought anew.
"use strict";

const zooms = new Map();
const hiddenLines = new Map(); // labels of lines that somebody has switched off, by chart
const HEIGHT = 240;
const UNLIKE = 20; // lines whose greatest values differ by more have an axis each
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 1000, 10000, 100000]; // ticks of states
let drawn = [];

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// The scale of each line: y, or y2 for those that are much smaller than the greatest.
function scalesOf(told) {
  const sizes = told.lines.map((line) => Math.max(...line.y.map((value) => Math.abs(value ?? 0)), 0));
  const greatest = Math.max(...sizes);
  return sizes.map((size) => (told.group === undefined && size > 0 && size * UNLIKE < greatest ? "y2" : "y"));
}

function seriesOf(line, devices, told, scale) {
  const stroke = line.kind === "least" || line.kind === "most" ? colour("--quiet") : colour(`--line-${(devices.indexOf(line.device) % 8) + 1}`);
  const label = line.kind === "window" ? line.device : ["least", "most"].includes(line.kind) ? `${line.kind} of ${line.device}` : `${line.device}, ${line.kind}`;
  const value = (_, value) => (value === null || value === undefined ? "" : `${rounded(value)} ${told.unit ?? ""}`);
  const series = { label, stroke, scale, value, width: 1.5, class: line.kind, points: { size: 4 }, show: !hiddenLines.get(told.id)?.has(label) };
  if (told.is_bars) return { ...series, paths: uPlot.paths.bars({ size: [0.6, 60] }), fill: stroke, points: { show: false } };
  if (told.is_stepped) series.paths = uPlot.paths.stepped({ align: told.window_seconds ? 1 : -1 });
  if (line.kind === "least" || line.kind === "most") return { ...series, width: 0.5, points: { show: false } };
  if (line.kind === "low" || line.kind === "high") return { ...series, width: 0, points: { show: false } };
  if (line.kind === "anomaly") return { ...series, stroke: colour("--bad"), width: 0, paths: () => null, points: { show: true, size: 10, fill: colour("--bad") } };
  if (line.kind === "open") return { ...series, dash: [5, 4] };
  if (line.kind === "amended") return { ...series, width: 0, paths: () => null, points: { show: true, size: 9, fill: stroke } };
  if (line.kind === "carried") return { ...series, width: 0, paths: () => null, points: { show: true, size: 4, fill: colour("--card"), width: 1 } };
  if (line.kind === "partial") return { ...series, width: 0, paths: () => null, points: { show: true, size: 9, fill: colour("--card"), width: 1.5, paths: squares } };
  return series;
}

function squares(plot, series, from, to, filtered) {
  const path = new Path2D();
  for (let at = from; at <= to; at++) {
    const value = plot.data[series][at];
    if (value === null || value === undefined) continue;
    path.rect(plot.valToPos(plot.data[0][at], "x", true) - 4, plot.valToPos(value, plot.series[series].scale, true) - 4, 8, 8);
  }
  return { fill: path, stroke: path };
}

// What is drawn until the next restore stays inside of the axes.
function inside(plot, textAlign, textBaseline) {
  plot.ctx.save();
  plot.ctx.beginPath();
  plot.ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
  plot.ctx.clip();
  Object.assign(plot.ctx, { textAlign, textBaseline });
}

// Spans of time that a chart shows, in order: notes, episodes of alerts, and instants at which something was set aside or changed.
function bandsOf(plot, bands) {
  const [first, last] = [plot.bbox.left, plot.bbox.left + plot.bbox.width];
  return bands
    .map((band) => ({ ...band, left: Math.max(plot.valToPos(band.start, "x", true), first), right: Math.min(plot.valToPos(band.end, "x", true), last) }))
    .filter((band) => band.left <= band.right)
    .sort((one, other) => one.left - other.left);
}

function drawBands(plot, bands) {
  inside(plot, "left", "top");
  for (const band of bandsOf(plot, bands)) {
    plot.ctx.globalAlpha = band.tone ? 0.18 : 1;
    plot.ctx.fillStyle = colour(band.tone ? `--${band.tone}` : "--line");
    plot.ctx.fillRect(band.left, plot.bbox.top, Math.max(band.right - band.left, 2), plot.bbox.height);
  }
  plot.ctx.restore();
}

// The names of bands, in three rows; one that has no room is left out, and the same again and again is named once.
function drawNames(plot, bands) {
  inside(plot, "left", "top");
  const ends = [-Infinity, -Infinity, -Infinity];
  let before = "";
  for (const band of bandsOf(plot, bands)) {
    const width = plot.ctx.measureText(band.text).width;
    const left = Math.min(band.left + 4, plot.bbox.left + plot.bbox.width - width - 4);
    const row = ends.findIndex((end) => end < left);
    if (row < 0 || band.text === before) continue;
    ends[row] = left + width + 8;
    before = band.text;
    plot.ctx.fillStyle = colour(band.tone ? `--${band.tone}` : "--quiet");
    plot.ctx.fillText(band.text, left, plot.bbox.top + (4 + 14 * row) * devicePixelRatio);
  }
  plot.ctx.restore();
}

function drawLimits(plot, limits) {
  inside(plot, "right", "bottom");
  plot.ctx.strokeStyle = plot.ctx.fillStyle = colour("--bad");
  plot.ctx.setLineDash([6, 4]);
  for (const [limit, text] of limits) {
    const y = plot.valToPos(limit, "y", true);
    if (y < plot.bbox.top || y > plot.bbox.top + plot.bbox.height) continue;
    plot.ctx.beginPath();
    plot.ctx.moveTo(plot.bbox.left, y);
    plot.ctx.lineTo(plot.bbox.left + plot.bbox.width, y);
    plot.ctx.stroke();
    plot.ctx.fillText(`${text} ${rounded(limit)}`, plot.bbox.left + plot.bbox.width - 4, y - 2);
  }
  plot.ctx.restore();
}

// The range of the values, and of the limits that are near: of alerts no further away than the values reach.
function rangeOf(limits) {
  return (_, least, most) => {
    if (least === null || least === undefined) return [0, 1];
    const height = most - least || Math.abs(most) * 0.1 || 1;
    const near = limits.filter(([limit, _, reach]) => limit > least - reach * height && limit < most + reach * height).map(([limit]) => limit);
    const [low, high] = [Math.min(least, ...near), Math.max(most, ...near)];
    return [low - 0.08 * (high - low || height), high + 0.08 * (high - low || height)];
  };
}

function rounded(value) {
  const text = Number(value.toPrecision(Math.abs(value) >= 1000 ? 12 : 4));
  return Math.abs(text) >= 1000 && Math.abs(text) < 1e12 ? Math.round(text).toLocaleString("en-US") : String(text);
}

// The line that is nearest to the cursor at its instant.
function nearest(plot, told) {
  let best = null;
  told.lines.forEach((line, place) => {
    const at = plot.cursor.idxs?.[place + 1] ?? plot.cursor.idx;
    const value = at === null ? null : plot.data[place + 1][at];
    if (value === null || value === undefined || ["least", "most", "low", "high"].includes(line.kind)) return;
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

// Instants of the axis: the time of day, with seconds where two are closer than a minute, and the date where it begins.
const instants = (isLocal) => (_, splits) => {
  let day = "";
  const hasSeconds = splits.length > 1 && splits[1] - splits[0] < 60;
  return splits.map((seconds) => {
    const [date, time] = instant(seconds, isLocal).split(" ");
    const text = time.slice(0, hasSeconds ? 8 : 5);
    const shown = date === day ? text : `${text}\n${date}`;
    day = date;
    return shown;
  });
};

// Axes, and what the legend calls the first column: instants, numbers or names.
function axesOf(told, scales, xs) {
  const line = { stroke: colour("--line"), width: 1 };
  const values = (_, splits) => splits.map(rounded);
  const isCrowded = told.names?.length > 8;
  const names = { values: (_, splits) => splits.map((at) => told.names[at] ?? ""), splits: xs, rotate: isCrowded ? -40 : 0, size: isCrowded ? 90 : 50 };
  const x = told.names ? names : { values: told.is_time === false ? values : instants(told.is_local) };
  const y = { size: 70, values, label: told.unit || undefined, labelSize: 18, ...(told.is_stepped && { incrs: WHOLE }) };
  const small = told.lines.filter((_, at) => scales[at] === "y2").map((line) => line.device).join(", ");
  const y2 = { scale: "y2", side: 1, size: 70, values, label: small, labelSize: 18, grid: { show: false } };
  return [x, y, ...(small ? [y2] : [])].map((axis) => ({ stroke: colour("--ink"), grid: line, ticks: line, ...axis }));
}

function firstOf(told) {
  if (told.names) return { label: "for", value: (_, at) => told.names[at] ?? "" };
  if (told.is_time === false) return { label: "x" };
  return { label: "at", value: (_, seconds) => (seconds === null ? "" : instant(seconds, told.is_local)) };
}

// `devices`: of all charts of the page, so that a device has one colour in all of them.
function draw({ place, told }, devices) {
  const data = uPlot.join(told.lines.map((line) => [line.x, line.y]));
  const scales = scalesOf(told);
  const band = ["most", "least"].map((kind) => told.lines.findIndex((line) => line.kind === kind) + 1);
  const expected = devices.map((device) => ({ series: ["high", "low"].map((kind) => told.lines.findIndex((line) => line.device === device && line.kind === kind) + 1), fill: `${colour(`--line-${(devices.indexOf(device) % 8) + 1}`)}30` })).filter(({ series }) => series[0]);
  const plot = new uPlot(
    {
      width: Math.max(place.clientWidth, 200),
      height: HEIGHT,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), told.is_local ? "UTC" : zones.value || Intl.DateTimeFormat().resolvedOptions().timeZone),
      scales: {
        x: { time: told.is_time !== false, ...(told.names && { range: [-0.6, told.names.length - 0.4] }) },
        y: { range: told.is_bars ? (_, least, most) => [Math.min(0, least), Math.max(0, most) * 1.05 || 1] : rangeOf(told.limits) },
        y2: {},
      },
      axes: axesOf(told, scales, data[0]),
      series: [firstOf(told), ...told.lines.map((line, at) => seriesOf(line, devices, told, scales[at]))],
      bands: [...(band[0] && band[1] ? [{ series: band, fill: `${colour("--line")}70` }] : []), ...expected],
      cursor: { drag: { x: true, y: false }, sync: told.group ? { key: told.group } : undefined },
      hooks: {
        drawClear: [(of) => drawBands(of, told.bands)],
        draw: [(of) => drawLimits(of, told.limits), (of) => drawNames(of, told.bands)],
        setSeries: [(of) => hiddenLines.set(place.id, new Set(of.series.filter((line) => !line.show).map((line) => line.label)))],
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
    const step = told.window_seconds; // of readings: the window that one is in
    if (point && point.distance < 30) location.href = `/readings?${new URLSearchParams({ device: point.device, metric: told.metric, end: step ? (Math.floor(point.end / step) + 1) * step : point.end })}`;
  });
  if (zooms.has(place.id)) plot.setScale("x", zooms.get(place.id));
  return { plot, place };
}

function drawAll() {
  for (const { plot } of drawn) plot.destroy();
  const charts = [...document.querySelectorAll(".plot")].map((place) => ({ place, told: { id: place.id, limits: [], ...JSON.parse(place.dataset.plot) } }));
  const devices = [...new Set(charts.flatMap(({ told }) => told.lines.map((line) => line.device)))].sort();
  drawn = charts.map((chart) => draw(chart, devices));
}

addEventListener("resize", () => {
  for (const { plot, place } of drawn) plot.setSize({ width: Math.max(place.clientWidth, 200), height: HEIGHT });
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
drawAll();
