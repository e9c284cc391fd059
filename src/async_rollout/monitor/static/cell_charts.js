// The charts of a cell's page.

import { draw, PALETTE } from "./charts.js";
import { plain } from "./curves.js";
import { byId } from "./dom.js";
import { points } from "./measures.js";

const line = (xy, name, color, more = {}) => ({ ...xy, name, type: "scatter", mode: xy.x.length < 2 ? "markers" : "lines",
  line: { color, width: 1.6 }, ...more });

export async function drawCell(card, history, detail) {
  const of = (y) => points(history, y, "version");
  const one = (name, y, label, yaxis = {}) => draw(byId(`plot-${name}`), [line(of(y), label, PALETTE[0])], { x: "updates", yaxis: { rangemode: "tozero", ...yaxis } });
  await draw(byId("plot-pass"), [line(of("pass_rate"), "training", PALETTE[0]),
    line(of("eval"), "held-out", PALETTE[1], { mode: "lines+markers" })], { x: "updates", legend: true, yaxis: { range: [-0.02, 1.02] } });
  byId("plot-pass").dataset.points = history.columns.version.length;
  await one("reward", "reward", "reward");
  const bound = card.k === "inf" || !card.version ? [] : [line({ x: extent(history), y: [card.k, card.k] }, `K = ${card.k}`, PALETTE[5], { line: { dash: "dot", color: PALETTE[5] } })];
  await draw(byId("plot-staleness"), [line(of("staleness"), "mean", PALETTE[0]), ...bound], { x: "updates", legend: true, yaxis: { rangemode: "tozero" } });
  await one("ess", "ess", "effective sample size");
  await one("kl", "kl", "KL", { exponentformat: "e" });
  await one("speed", "speed", "tokens / s");
  await draw(byId("plot-queue"), [line(of("waiting"), "waiting", PALETTE[0]), line(of("running"), "running", PALETTE[1])],
    { x: "updates", y: "groups", legend: true, yaxis: { rangemode: "tozero" } });
  await drawAges(detail);
  await drawTimeline(detail.timeline);
}

const extent = ({ columns: { version } }) => [0, version[version.length - 1] ?? 1];

function drawAges(detail) {
  const kinds = Object.entries(detail.staleness).filter(([, ages]) => Object.keys(ages).length);
  const traces = kinds.map(([kind, ages], i) => ({ type: "bar", name: kind, x: Object.keys(ages).map(Number), y: Object.values(ages), marker: { color: PALETTE[i] } }));
  const oldest = Math.max(0, ...traces.flatMap((trace) => trace.x));
  const xaxis = { range: [-0.75, Math.max(oldest, 3) + 0.75], ...(oldest > 12 ? {} : { dtick: 1 }) };
  return draw(byId("plot-ages"), traces, { x: "age in versions", y: "tokens", legend: kinds.length > 1, bargap: 0.3, xaxis });
}

function drawTimeline(spans) {
  const names = [...new Set(spans.map((span) => span.name))];
  const traces = names.map((name, i) => {
    const mine = spans.filter((span) => span.name === name);
    return { type: "bar", orientation: "h", name: plain(name), y: mine.map((s) => plain(s.role)), base: mine.map((s) => s.start),
      x: mine.map((s) => s.end - s.start), marker: { color: PALETTE[i % PALETTE.length], line: { width: 0 } },
      hovertemplate: "%{base:.3f} s + %{x:.3f} s<extra>%{fullData.name}</extra>" };
  });
  return draw(byId("plot-timeline"), traces, { x: "seconds", legend: true, barmode: "overlay", bargap: 0.35 });
}
