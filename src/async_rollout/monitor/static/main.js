// Puts the parts together: what is drawn again when cells change, and when the view changes.

import { closeCell, renderCell } from "./cell.js";
import { renderAxes, renderCurves } from "./curves.js";
import { byId, h } from "./dom.js";
import { renderFilters, renderStates, shown } from "./filters.js";
import { forgetHistories } from "./history.js";
import { refreshTimes, renderList } from "./list.js";
import { cells, connect, onCells, sweep } from "./store.js";
import { go, onView, view } from "./url.js";

const CURVES_MS = 1000; // between two drawings of the curves
let curvesDue = null;
let listScroll = 0; // where the list was left for a cell

function render() {
  const leaving = Boolean(view.cell) && byId("cell").hidden;
  const returning = !view.cell && byId("overview").hidden;
  if (leaving) listScroll = scrollY;
  byId("overview").hidden = Boolean(view.cell);
  byId("cell").hidden = !view.cell;
  byId("sweep").textContent = sweep.name + (sweep.unread ? ` (reading ${sweep.unread} more)` : "");
  document.title = title();
  byId("problems").replaceChildren(...sweep.findings.map((f) => h("span", { class: "finding", "data-level": f.level }, f.text)));
  if (view.cell) return renderCell();
  closeCell();
  renderStates();
  renderFilters();
  renderList(shown());
  if (returning) scrollTo(0, listScroll);
  return null;
}

function title() {
  const bad = ["failed", "stalled"].reduce((n, state) => n + (sweep.states[state] ?? 0), 0);
  return `${bad ? `(${bad}!) ` : ""}${view.cell || sweep.name || "async-rollout"}`;
}

function curvesSoon(wait = CURVES_MS) {
  if (view.cell) return;
  curvesDue ??= setTimeout(() => {
    curvesDue = null;
    if (!view.cell) renderCurves(shown());
  }, wait);
}

onCells((changed, fresh) => {
  if (fresh) forgetHistories();
  render();
  if (changed.size) curvesSoon(byId("plot").dataset.points ? CURVES_MS : 0);
});

onView(() => {
  render();
  if (!view.cell) renderAxes();
  curvesSoon(0);
});

connect((state) => {
  const words = { live: "live", lost: "connection lost, trying again" };
  byId("connection").dataset.state = state;
  byId("connection").textContent = words[state];
});

addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "/" && !typing && !view.cell) {
    event.preventDefault();
    byId("filters").querySelector("input")?.focus();
  } else if (event.key === "Escape" && view.cell) go({ cell: "" });
});

byId("home").addEventListener("click", (event) => {
  event.preventDefault();
  go({ cell: "" });
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (view.cell ? renderCell() : curvesSoon(0)));
setInterval(refreshTimes, 5000);
renderAxes();
render();
