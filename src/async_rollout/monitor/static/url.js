// What is looked at, kept in the page's address: it can be bookmarked, shared and gone back to.

const DEFAULTS = { q: "", dataset: "", mode: "", algorithm: "", k: "", state: "", y: "pass_rate",
  x: "version", smooth: "1", sort: "state", all: "", cell: "" };
const listeners = [];

export let view = read();

function read() {
  const query = new URLSearchParams(location.search);
  return Object.fromEntries(Object.entries(DEFAULTS).map(([name, value]) => [name, query.get(name) ?? value]));
}

function address(values) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== DEFAULTS[name]) query.set(name, value);
  const text = query.toString();
  return text ? `?${text}` : "/";
}

export const link = (changes) => address({ ...view, ...changes });

// Opening a cell can be gone back from; turning a filter replaces the address.
export function go(changes) {
  const target = link(changes);
  if ("cell" in changes) history.pushState(null, "", target);
  else history.replaceState(null, "", target);
  view = read();
  listeners.forEach((listen) => listen());
}

export const onView = (listen) => listeners.push(listen);

addEventListener("popstate", () => {
  view = read();
  listeners.forEach((listen) => listen());
});
