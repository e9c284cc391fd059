// One cell's page: facts, charts, samples, logs, configuration.

import { drawCell } from "./cell_charts.js";
import { bar, byId, h } from "./dom.js";
import { ago, fixed, percent, staleness, updates, whole } from "./format.js";
import { historyOf, path } from "./history.js";
import { cells } from "./store.js";
import { go, link, view } from "./url.js";

const PLOTS = { pass: "Pass rate", reward: "Reward", staleness: "Staleness", ages: "Age of trained tokens", ess: "Effective sample size",
  kl: "KL", speed: "Trained tokens / s", queue: "Queue depth" };
const AGAIN_MS = 2000; // between two requests for one cell
let open = null; // id of the cell whose page stands
let busy = false;

export async function renderCell() {
  const card = cells.get(view.cell);
  const place = byId("cell");
  if (!card) {
    open = null;
    place.replaceChildren(back(), h("p", { class: "note" }, cells.size ? `There is no cell ${view.cell}.` : "Loading"));
    return;
  }
  if (open !== card.id) {
    open = card.id;
    place.replaceChildren(back(), frame(card));
    byId("main").focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  renderHead(card);
  await update(card);
}

export const closeCell = () => { open = null; };

async function update(card) {
  if (busy) return;
  busy = true;
  try {
    const [history, answer] = await Promise.all([historyOf(card.id), fetch(`/api/cells/${path(card.id)}`)]);
    if (open !== card.id || !answer.ok || !history) return;
    const detail = await answer.json();
    renderTexts(detail);
    await drawCell(card, history, detail);
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  } finally {
    busy = false;
    if (open && open !== card.id) renderCell();
    else if (open && cells.get(open) && cells.get(open) !== card) renderCell();
  }
}

function back() {
  return h("p", {}, h("a", { href: link({ cell: "" }), onclick: (event) => { event.preventDefault(); go({ cell: "" }); } }, "← all cells"));
}

function frame(card) {
  const plot = ([name, title], kind = "panel") => h("section", { class: kind, "aria-label": title }, h("h3", {}, title), h("div", { id: `plot-${name}`, class: "plot small" }));
  const part = (id, title, isOpen) => h("details", { class: "panel", open: isOpen }, h("summary", {}, title), h("div", { id }));
  return h("div", { "data-cell": card.id },
    h("section", { class: "panel" }, h("div", { id: "cell-head", class: "head" }), h("dl", { id: "cell-facts", class: "facts" }), h("div", { id: "cell-findings" })),
    h("div", { class: "grid" }, Object.entries(PLOTS).map((entry) => plot(entry)),
      h("section", { class: "panel", "aria-label": "Busy" }, h("h3", { id: "busy-title" }, "Busy"), h("div", { id: "cell-busy", class: "busy" })),
      plot(["timeline", "Timeline"], "panel wide")),
    part("cell-samples", "Latest samples", true), part("cell-states", "States", false),
    part("cell-stdout", "stdout.log, its end", true), part("cell-stderr", "stderr.log, its end", false), part("cell-config", "Configuration", false));
}

function renderHead(card) {
  byId("cell-head").replaceChildren(h("h2", {}, card.id), h("span", { class: "state", "data-state": card.state }, card.state),
    h("span", { class: "note" }, card.activity === card.state ? "" : card.activity));
  const facts = { Updates: updates(card), "Pass rate": fixed(card.pass_rate), "Held-out": fixed(card.eval_pass_rate),
    Staleness: staleness(card), Oldest: whole(card.staleness_max), "Tokens/s": whole(card.tokens_per_sec), Attempts: String(card.attempts) };
  byId("cell-facts").replaceChildren(...Object.entries(facts).map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", {}, text))),
    h("div", {}, h("dt", {}, "Last sign"), h("dd", { "data-time": card.last_sign }, ago(card.last_sign))));
  byId("cell-findings").replaceChildren(...card.findings.map((f) => h("span", { class: "finding", "data-level": f.level }, f.text)));
}

function renderTexts(detail) {
  byId("busy-title").textContent = `Busy: ${detail.busy_source}`;
  const shares = Object.entries(detail.busy);
  byId("cell-busy").replaceChildren(...shares.flatMap(([role, share]) => [h("span", {}, role), bar(share, role), h("span", {}, percent(share))]));
  if (!shares.length) byId("cell-busy").replaceChildren(h("span", { class: "note" }, "not known yet"));
  byId("cell-samples").replaceChildren(...(detail.samples.length ? detail.samples.map(sample) : [h("p", { class: "note" }, "none yet")]));
  byId("cell-states").replaceChildren(h("pre", { tabindex: 0 }, detail.states.map(stateLine).join("\n") || "none yet"));
  log("cell-stdout", detail.logs["stdout.log"]);
  log("cell-stderr", detail.logs["stderr.log"]);
  log("cell-config", detail.config ? JSON.stringify(detail.config, null, 1) : "");
}

// Kept as it stands if nothing changed, so that a reader's place and selection stay.
function log(id, text) {
  const shown = byId(id).querySelector("pre");
  if (shown && shown.textContent === text) return;
  const pre = h("pre", { tabindex: 0 }, text || "empty");
  byId(id).replaceChildren(pre);
  if (id !== "cell-config") pre.scrollTop = pre.scrollHeight;
}

function sample(row) {
  const versions = (row.versions ?? []).map(([version, tokens]) => `v${version} × ${tokens}`).join(", ");
  const age = row.staleness === null ? "" : `, staleness ${row.staleness}`;
  return h("article", { class: "sample" },
    h("p", {}, h("b", { class: "verdict", "data-pass": row.verdict === "pass" }, String(row.verdict)),
      ` reward ${row.reward ?? "–"}, ${row.task_id}, group ${row.group} sample ${row.sample}, ${versions}${age}${row.dropped ? `, dropped: ${row.dropped}` : ""}`),
    h("pre", { tabindex: 0 }, h("b", {}, String(row.prompt ?? "")), String(row.response ?? "")));
}

function stateLine(row) {
  const time = new Date(1000 * row.time).toISOString().slice(0, 19).replace("T", " ");
  return `${time}Z  attempt ${row.attempt}  ${row.state}${row.reason ? `  ${row.reason}: ${row.detail}` : ""}  (${row.host}, pid ${row.pid})`;
}
