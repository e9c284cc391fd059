// Which cells are shown: state buttons, a choice for each axis, words of the id.

import { byId, choice, h } from "./dom.js";
import { bound, natural } from "./format.js";
import { cells, sweep } from "./store.js";
import { go, view } from "./url.js";

export const STATES = ["failed", "stalled", "collapsed", "retrying", "running", "setting up", "queued", "done"];
const AXES = { dataset: "Dataset", mode: "Mode", algorithm: "Algorithm", k: "K" };
let offered = "";

export function shown() {
  const words = view.q.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = new Set(view.state ? view.state.split(",") : []);
  return [...cells.values()].filter((card) =>
    (!wanted.size || wanted.has(card.state))
    && Object.keys(AXES).every((axis) => !view[axis] || String(card[axis]) === view[axis])
    && words.every((word) => card.id.toLowerCase().includes(word)));
}

export function renderStates() {
  const wanted = new Set(view.state ? view.state.split(",") : []);
  const focused = document.activeElement?.dataset?.state;
  const buttons = STATES.filter((state) => sweep.states[state] || wanted.has(state)).map((state) =>
    h("button", { type: "button", "data-state": state, "aria-pressed": wanted.has(state), onclick: () => toggle(state) },
      h("span", { class: "state", "data-state": state }, state), h("b", {}, String(sweep.states[state] ?? 0))));
  byId("states").replaceChildren(...buttons);
  buttons.find((button) => button.dataset.state === focused)?.focus();
}

function toggle(state) {
  const wanted = new Set(view.state ? view.state.split(",") : []);
  if (!wanted.delete(state)) wanted.add(state);
  go({ state: STATES.filter((each) => wanted.has(each)).join(","), all: "" });
}

// Rebuilt only when another value appears, so that an open list stays open.
export function renderFilters() {
  const values = Object.fromEntries(Object.keys(AXES).map((axis) =>
    [axis, [...new Set([...cells.values()].map((card) => String(card[axis])))].sort(natural)]));
  const now = JSON.stringify([values, { ...view, q: "" }]);
  if (now === offered) return;
  offered = now;
  const form = byId("filters");
  const old = form.querySelector("input");
  const search = old?.parentElement ?? h("label", {}, "Search ( / )", h("input", { type: "search", name: "q", value: view.q,
    autocomplete: "off", oninput: (event) => go({ q: event.target.value, all: "" }) }));
  form.replaceChildren(search, ...Object.entries(AXES).map(([axis, label]) => choice(label, axis,
    [["", "all"], ...values[axis].map((value) => [value, axis === "k" ? bound(value) : value || "?"])],
    view[axis], (value) => go({ [axis]: value, all: "" }))));
  form.onsubmit = (event) => event.preventDefault();
}
