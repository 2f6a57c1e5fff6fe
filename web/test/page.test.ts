import assert from "node:assert/strict";
import { test } from "node:test";
import { sortedRows } from "../src/components/sorting";
import { Anchors } from "../src/report/anchors";

test("rows are sorted by value, and empty cells stay at the end", () => {
  const rows = [["b"], [{ text: "10 %", value: 0.1 }], [""], [{ text: "9 %", value: 0.09 }]];
  const numbers = rows.slice(1);
  const sorted = (direction: "ascending" | "descending") =>
    sortedRows(numbers, { column: 0, direction }).map(([cell]) =>
      typeof cell === "object" ? cell.text : cell,
    );
  assert.deepEqual(sorted("ascending"), ["9 %", "10 %", ""]);
  assert.deepEqual(sorted("descending"), ["10 %", "9 %", ""]);
});

test("anchors are taken once", () => {
  const anchors = new Anchors();
  const made = ["Figure 1", "figure-1", "Figure 1", "figure 1 2", "<>"].map((wish) => anchors.make(wish));
  assert.equal(new Set(made).size, made.length);
  assert.equal(made[0], "figure-1");
});
