// One row a cell. Only rows whose card changed are made again.

import { bar, byId, h } from "./dom.js";
import { ago, byName, fixed, NONE, staleness, updates, whole } from "./format.js";
import { STATES } from "./filters.js";
import { go, link, view } from "./url.js";

const SHOWN = 200;
const COLUMNS = [["state", "State"], ["id", "Cell"], ["progress", "Progress"], ["pass_rate", "Pass rate"],
  ["eval_pass_rate", "Held-out"], ["staleness", "Staleness"], ["tokens_per_sec", "Tokens/s"],
  ["attempts", "Attempts"], ["last_sign", "Last sign"]];
const rows = new Map(); // id: [card, row]

export function renderList(cards) {
  byId("cells").tHead.replaceChildren(h("tr", {}, COLUMNS.map(([key, label]) =>
    h("th", { scope: "col", "aria-sort": view.sort === key ? "ascending" : null },
      h("a", { href: link({ sort: key }), onclick: follow({ sort: key }) }, label)))));
  const sorted = [...cards].sort(order(view.sort));
  const visible = view.all ? sorted : sorted.slice(0, SHOWN);
  const body = byId("cells").tBodies[0];
  const wanted = visible.map(rowOf);
  wanted.forEach((row, i) => { if (body.rows[i] !== row) body.insertBefore(row, body.rows[i] ?? null); });
  while (body.rows.length > wanted.length) body.deleteRow(-1);
  const left = sorted.length - visible.length;
  byId("list-note").replaceChildren(...(left ? [`${SHOWN} of ${sorted.length} cells. `,
    h("button", { type: "button", onclick: () => go({ all: "1" }) }, "Show all")]
    : sorted.length ? [] : ["No cell is here, or none passes the filters."]));
}

function rowOf(card) {
  const known = rows.get(card.id);
  if (known?.[0] === card) return known[1];
  const row = render(card);
  if (known?.[1].contains(document.activeElement)) requestAnimationFrame(() => row.querySelector("a").focus());
  known?.[1].replaceWith(row);
  rows.set(card.id, [card, row]);
  return row;
}

function render(card) {
  const number = (label, text) => h("td", { class: text.startsWith(NONE) ? "num none" : "num", "data-label": label }, text);
  const findings = card.findings.filter((finding) => finding.level !== "note");
  return h("tr", { "data-id": card.id },
    h("td", { class: "status" }, h("span", { class: "state", "data-state": card.state }, card.state)),
    h("td", { class: "name" },
      h("a", { href: link({ cell: card.id }), onclick: follow({ cell: card.id }) }, card.cell),
      h("small", {}, `${card.experiment} / ${card.dataset}`),
      findings.map((f) => h("span", { class: "finding", "data-level": f.level }, f.text))),
    h("td", { class: "progress", "data-state": card.state }, updates(card), bar(card.progress, "progress")),
    number("Pass rate", fixed(card.pass_rate)),
    number("Held-out", fixed(card.eval_pass_rate)),
    number("Staleness", staleness(card)),
    number("Tokens/s", whole(card.tokens_per_sec)),
    number("Attempts", String(card.attempts)),
    h("td", { class: "num seen", "data-label": "Last sign", "data-time": card.last_sign }, ago(card.last_sign)));
}

function follow(changes) {
  return (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    go(changes);
  };
}

function order(key) {
  if (key === "id") return byName;
  const rank = key === "state" ? (card) => STATES.indexOf(card.state) : (card) => -(card[key] ?? -Infinity);
  return (a, b) => rank(a) - rank(b) || byName(a, b);
}

export function refreshTimes() {
  for (const cell of document.querySelectorAll("[data-time]")) cell.textContent = ago(Number(cell.dataset.time));
}
