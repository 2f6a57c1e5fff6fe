import assert from "node:assert/strict";
import { test } from "node:test";
import { distinct, outline, runsOf, thinned } from "../src/charts/points";
import { makeScale } from "../src/charts/scale";
import { paletteOf } from "../src/charts/palette";
import type { Series } from "../src/charts/types";

const series = (options: Partial<Series>): Series => ({
  name: "s",
  role: "",
  mark: "line",
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
const spots = (count: number, y: (i: number) => number) =>
  Array.from({ length: count }, (_, index) => ({ x: (index * 500) / count, y: y(index), index }));

test("gaps split a line", () => {
  const gappy = series({ x: [0, 1, 2, 3], y: [1, 2, null, 4] });
  const runs = runsOf(gappy, gappy.y, scale(0, 100), scale(0, 100));
  assert.deepEqual(runs.map((run) => run.map((spot) => spot.index)), [[0, 1], [3]]);
});

test("a thinned line keeps its ends and its peaks", () => {
  const line = spots(100_000, (i) => (i === 54_321 ? 999 : i % 7));
  const thin = thinned(line, 0, 500);
  assert.ok(thin.length <= 4 * 501, String(thin.length));
  assert.equal(thin[0]!.index, 0);
  assert.equal(thin.at(-1)!.index, 99_999);
  assert.ok(thin.some((spot) => spot.index === 54_321));
  assert.ok(thin.every((spot, i) => i === 0 || spot.index > thin[i - 1]!.index));
});

test("what is out of sight is hardly kept", () => {
  assert.ok(thinned(spots(100_000, (i) => i % 7), 100, 110).length < 60);
});

test("short lines and lines that turn back stay as they are", () => {
  const short = spots(100, (i) => i);
  assert.equal(thinned(short, 0, 500), short);
  const back = spots(5000, (i) => i).reverse();
  assert.equal(thinned(back, 0, 500), back);
});

test("of many points one is kept for each pixel", () => {
  const cloud = Array.from({ length: 5000 }, (_, index) => ({ x: index % 10, y: 3, index }));
  assert.equal(distinct(cloud).length, 10);
});

test("steps go along x first", () => {
  assert.equal(outline([{ x: 1, y: 2, index: 0 }, { x: 3, y: 4, index: 1 }], true), "M1.0 2.0H3.0V4.0");
});

test("a role has its colour in every figure and others get them in order", () => {
  const [a, zeus, b] = [series({ name: "a" }), series({ role: "zeus" }), series({ name: "b" })];
  const palette = paletteOf([a, zeus, b]);
  assert.deepEqual([a, zeus, b].map(palette), [
    "var(--other-0)",
    "var(--role-zeus)",
    "var(--other-1)",
  ]);
});
