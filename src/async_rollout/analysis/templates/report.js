"use strict";
const value = (row, column) => {
  const text = row.cells[column].textContent.trim().replaceAll(",", "");
  const number = parseFloat(text);
  return Number.isNaN(number) ? text : number;
};
const compare = (a, b) =>
  typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th");
    const column = head.cellIndex;
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    const body = head.closest("table").tBodies[0];
    const rows = [...body.rows].sort((a, b) => sign * compare(value(a, column), value(b, column)));
    body.append(...rows);
  });
}
