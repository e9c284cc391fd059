// Elements from data. Text only ever becomes text nodes: nothing a model wrote is parsed as HTML.

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export const byId = (id) => document.getElementById(id);

// A bar that is filled to a share in [0, 1].
export function bar(share, label) {
  const fill = h("i");
  fill.style.width = `${Math.round(1000 * share) / 10}%`;
  return h("span", { class: "bar", role: "progressbar", "aria-valuemin": 0, "aria-valuemax": 100,
    "aria-valuenow": Math.round(100 * share), "aria-label": label }, fill);
}

// A labelled <select>; options are [value, text].
export function choice(label, name, options, value, onchange) {
  const select = h("select", { name, onchange: (event) => onchange(event.target.value) },
    options.map(([key, text]) => h("option", { value: key, selected: key === value }, text)));
  return h("label", {}, label, select);
}
