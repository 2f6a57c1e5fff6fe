// How tables show numbers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { decimalsOf, grouped, numberText } from "../src/components/numbers";

const cell = (text: string) => ({ text, value: Number.parseFloat(text) });
const table = (...rows: string[][]) => ({
  id: "t",
  title: "",
  caption: "",
  columns: rows[0]!.map((_, i) => String(i)),
  rows: rows.map((row) => row.map(cell)),
});

test("numbers of a column have as many decimals as each other", () => {
  const decimals = decimalsOf(table(["2", "1.25"], ["2.5", "3"]));
  assert.deepEqual(decimals, [1, 2]);
  assert.equal(numberText("2", decimals[0]!), "2.0");
  assert.equal(numberText("-3", decimals[1]!), "-3.00");
});

test("numbers with a unit or an uncertainty stay as they are", () => {
  const decimals = decimalsOf(table(["44.0 ± 2.9 kJ"], ["72 ± 16 kJ"]));
  assert.deepEqual(decimals, [null]);
  assert.equal(numberText("72 ± 16 kJ", null), "72 ± 16 kJ");
});

test("thousands are apart from five digits on, decimals are not", () => {
  assert.equal(grouped("1200000"), "1,200,000");
  assert.equal(grouped("12345.678901"), "12,345.678901");
  assert.equal(grouped("2026"), "2026");
  assert.equal(numberText("6697736.5", 1), "6,697,736.5");
});
