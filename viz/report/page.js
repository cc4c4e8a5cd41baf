"use strict";
for (const head of document.querySelectorAll("table.sorted th")) {
  head.addEventListener("click", () => {
    const body = head.closest("table").tBodies[0];
    const column = head.cellIndex, down = head.dataset.down !== "yes";
    head.dataset.down = down ? "yes" : "no";
    const value = row => row.cells[column].dataset.v ?? row.cells[column].textContent;
    const order = (a, b) => {
      const x = value(a), y = value(b), n = Number(x) - Number(y);
      return Number.isNaN(n) ? x.localeCompare(y) : n;
    };
    body.append(...[...body.rows].sort((a, b) => down ? order(b, a) : order(a, b)));
  });
}
const filter = document.getElementById("filter");
if (filter) { // there are calls
  filter.hidden = false;
  filter.addEventListener("input", () => {
    for (const row of document.querySelectorAll("#calls tbody tr")) {
      row.hidden = !row.textContent.includes(filter.value);
    }
  });
}
document.documentElement.dataset.ready = "yes";
