"use strict";
const root = document.documentElement;

// Light or dark: the system's choice until the reader makes one.
const theme = document.getElementById("theme");
const system = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
const label = () => (theme.textContent = isDark() ? "light" : "dark");
theme.hidden = false;
theme.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  label();
});
system.addEventListener("change", label);
label();

// Tables: sorted by a column, numbers before texts and nothing last; filtered by words.
const value = (row, column) => {
  const text = row.cells[column].textContent.trim();
  if (["inf", "∞", "not reached"].includes(text)) return Infinity;
  const number = parseFloat(text.replaceAll(",", "").replace("−", "-"));
  return Number.isNaN(number) ? text : number;
};
const rank = (key) => (key === "" ? 2 : typeof key === "string" ? 1 : 0);
const compare = (a, b) =>
  rank(a) - rank(b) || (typeof a === "number" ? (a === b ? 0 : a - b) : a.localeCompare(b));
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th");
    const column = head.cellIndex;
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    const body = head.closest("table").tBodies[0];
    const keyed = [...body.rows].map((row) => [value(row, column), row]);
    keyed.sort(([a], [b]) => (a === "" || b === "" ? compare(a, b) : sign * compare(a, b)));
    body.append(...keyed.map(([, row]) => row));
  });
}
for (const input of document.querySelectorAll(".tools input")) {
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    for (const row of input.parentNode.nextElementSibling.querySelectorAll("tbody tr")) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
}

// Figures: the drawing itself moves into the dialog, so that its links work there too.
const dialog = document.getElementById("enlarged");
const stage = dialog.querySelector("div");
let origin = null;
const enlarge = (plot) => {
  origin = plot;
  stage.append(...plot.childNodes);
  dialog.showModal();
};
dialog.addEventListener("close", () => {
  origin.append(...stage.childNodes);
});
dialog.addEventListener("click", (event) => {
  if (event.target === dialog) dialog.close();
});
document.getElementById("close").addEventListener("click", () => dialog.close());
for (const button of document.querySelectorAll(".enlarge")) {
  const plot = button.closest("figure").querySelector(".plot");
  button.hidden = false;
  button.addEventListener("click", () => enlarge(plot));
  plot.classList.add("zoom");
  plot.addEventListener("click", (event) => {
    if (!event.target.closest("a")) enlarge(plot);
  });
  plot.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.target !== plot) return;
    event.preventDefault(); // or the same Enter would press the button that now has the focus
    enlarge(plot);
  });
}

// Beside the text there is room for the contents; above it they start closed.
const contents = document.querySelector("nav details");
contents.open = matchMedia("(min-width: 72rem)").matches;
