import assert from "node:assert/strict";
import { test } from "node:test";
import { boxesOf, spanAt } from "../src/charts/spans";
import { makeScale } from "../src/charts/scale";
import type { Series } from "../src/charts/types";

const spans = (options: Partial<Series>): Series => ({
  name: "work",
  role: "",
  mark: "spans",
  x: [],
  y: [],
  ...options,
});
const scale = (low: number, high: number) =>
  makeScale({
    axis: { title: "", logarithmic: false, from_zero: false },
    extent: { low: 0, high: 1 },
    from: 0,
    to: 100,
    ticks: 5,
    zoomed: { low, high },
  });

test("a span is a box from its start to its end", () => {
  const series = spans({ x: [10, 30], until: [20, 60], y: [0, 1], heat: [0, 50] });
  const boxes = boxesOf(series, scale(0, 100), scale(0, 5000));
  assert.deepEqual(
    boxes.map(({ left, right, lane, share }) => [left, right, lane, share]),
    [
      [10, 20, 0, 0],
      [30, 60, 1, 1],
    ],
  );
});

test("what has no place or is out of sight is left out", () => {
  const series = spans({ x: [null, 1, 500], until: [2, null, 600], y: [0, 0, 0] });
  assert.deepEqual(boxesOf(series, scale(0, 100), null), []);
});

test("spans too narrow to be told apart become one with their mean colour", () => {
  const count = 10_000;
  const x = Array.from({ length: count }, (_, i) => i);
  const series = spans({
    x,
    until: x.map((at) => at + 1),
    y: x.map(() => 0),
    heat: x.map((at) => (at % 2) * 100),
  });
  const boxes = boxesOf(series, scale(0, count), scale(0, 10_000));
  assert.ok(boxes.length <= 100, String(boxes.length));
  assert.equal(
    boxes.reduce((sum, box) => sum + box.count, 0),
    count,
  );
  for (const box of boxes) assert.ok(Math.abs(box.share - 0.5) < 0.05, String(box.share));
});

test("one points at the span below the pointer", () => {
  const series = spans({ x: [0, 10], until: [10, 20], y: [0, 1] });
  assert.equal(spanAt(series, 5, 0.2), 0);
  assert.equal(spanAt(series, 15, 0.9), 1);
  assert.equal(spanAt(series, 15, 0), -1);
  assert.equal(spanAt(series, 5, 0.49), -1);
});
