// The curves of the shown cells over each other: seeds share a colour.

import { draw, PALETTE, smoothed } from "./charts.js";
import { byId, choice } from "./dom.js";
import { bound, byName } from "./format.js";
import { historyOf } from "./history.js";
import { AXES, MEASURES, points } from "./measures.js";
import { go, view } from "./url.js";

const MOST = 24;
const LEGEND_MOST = 10;
const NARROW = 700; // pixels: below, a legend would cover the curves
let round = 0;

export function renderAxes() {
  const pairs = Object.entries;
  byId("axes").replaceChildren(
    choice("Curve", "y", pairs(MEASURES), view.y, (y) => go({ y })),
    choice("against", "x", pairs(AXES), view.x, (x) => go({ x })),
    choice("Mean of", "smooth", [["1", "1 point"], ["5", "5 points"], ["20", "20 points"]], view.smooth, (smooth) => go({ smooth })));
}

export async function renderCurves(cards) {
  const mine = ++round;
  const started = cards.filter((card) => card.version > 0);
  const drawn = started.sort(byName).slice(0, MOST);
  const histories = await Promise.all(drawn.map((card) => historyOf(card.id)));
  if (mine !== round) return; // something newer is on its way
  const groupOf = grouping(drawn);
  const groups = [...new Set(drawn.map(groupOf))];
  const seen = new Set();
  const traces = drawn.flatMap((card, i) => {
    if (!histories[i]) return [];
    const group = groupOf(card);
    const { x, y } = points(histories[i], view.y, view.x);
    const first = !seen.has(group);
    seen.add(group);
    const color = PALETTE[groups.indexOf(group) % PALETTE.length];
    const alone = view.y === "eval" || x.length < 2;
    return [{ x, y: smoothed(y, Number(view.smooth)), name: plain(group), legendgroup: group, showlegend: first, text: plain(card.id),
      hovertemplate: "%{text}<br>%{x}: %{y:.4g}<extra></extra>", type: "scatter",
      mode: alone ? "lines+markers" : "lines", line: { color, width: 1.6 }, marker: { size: 5 } }];
  });
  byId("plot").dataset.points = Math.max(0, ...traces.map((trace) => trace.x.length));
  byId("plot-note").textContent = started.length > MOST ? `${MOST} of ${started.length} cells are drawn: filter to see others.` : "";
  await draw(byId("plot"), traces, { x: AXES[view.x], y: MEASURES[view.y], legend: groups.length > 1 && groups.length <= LEGEND_MOST && innerWidth > NARROW });
}

// Cells that differ in nothing but the seed are one group, named by what tells groups apart.
function grouping(cards) {
  const parts = { experiment: "", dataset: "", mode: "", algorithm: "", arm: "", k: "K ", decoupled: "dec " };
  const telling = Object.keys(parts).filter((part) => new Set(cards.map((card) => card[part])).size > 1);
  const text = (card, part) => (part === "arm" ? card.arm || "base" : `${parts[part]}${part === "k" ? bound(card.k) : card[part]}`);
  return (card) => telling.map((part) => text(card, part)).join(", ") || card.cell;
}

// Plotly reads a small markup in names: without angle brackets there is none.
export const plain = (text) => text.replaceAll("<", "‹").replaceAll(">", "›").replaceAll("&", "＆");
