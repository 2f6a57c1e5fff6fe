import assert from "node:assert/strict";
import { test } from "node:test";
import { slotOf } from "../src/charts/marks";
import { formatNumber, tickLabel } from "../src/charts/format";
import { extentOf, linearTicks, logTicks, makeScale } from "../src/charts/scale";
import type { Axis, Panel, Series } from "../src/charts/types";

const axis = (options: Partial<Axis> = {}): Axis => ({
  title: "",
  logarithmic: false,
  from_zero: false,
  ...options,
});
const panelOf = (series: Partial<Series>, y: Partial<Axis> = {}): Panel => ({
  title: "",
  x: axis(),
  y: axis(y),
  series: [{ name: "s", role: "", mark: "line", x: [], y: [], ...series }],
});
const labels = (ticks: { label: string }[]) => ticks.map(({ label }) => label);

test("ticks are round numbers", () => {
  assert.deepEqual(labels(linearTicks(0, 100, 5)), ["0", "20", "40", "60", "80", "100"]);
  assert.deepEqual(labels(linearTicks(-2.1, 2.1, 5)), ["−2", "−1", "0", "1", "2"]);
  assert.deepEqual(labels(linearTicks(0.1, 0.3, 4)), ["0.1", "0.15", "0.2", "0.25", "0.3"]);
});

test("an axis has two ticks at least", () => {
  assert.ok(linearTicks(-3.2, 3.2, 2).length >= 2);
});

test("logarithmic ticks are decades or their parts", () => {
  assert.deepEqual(labels(logTicks(1, 1e6, 7)), ["1", "10", "100", "1000", "10k", "100k", "1M"]);
  assert.deepEqual(labels(logTicks(8, 130, 5)), ["10", "20", "30", "50", "100"]);
  assert.deepEqual(labels(logTicks(41, 46, 4)), ["42", "44", "46"]);
});

test("labels are short and exact", () => {
  assert.equal(tickLabel(0.30000000000000004, 0.1), "0.3");
  assert.equal(tickLabel(2_500_000, 500_000), "2.5M");
  assert.equal(formatNumber(1234.5678), "1,235");
  assert.equal(formatNumber(0.012345), "0.01235");
  assert.equal(formatNumber(-3e12), "−3e+12");
  assert.equal(formatNumber(null), "–");
});

test("the spread belongs to the extent, and what is no number does not", () => {
  const panel = panelOf({ x: [1, 2, null], y: [5, null, 99], low: [3, null, 1], high: [8, null, 9] });
  assert.deepEqual(extentOf(panel, "y"), { low: 3, high: 8 });
});

test("zoomed along x, the axis of y fits what is in sight", () => {
  const panel = panelOf({ x: [1, 2, 3], y: [10, 20, 900] });
  assert.deepEqual(extentOf(panel, "y", { low: 0, high: 2.5 }), { low: 10, high: 20 });
});

test("bars stand on zero and have room at both ends", () => {
  const panel = panelOf({ mark: "bars", x: [1, 2], y: [5, 9] });
  assert.equal(extentOf(panel, "y").low, 0);
  assert.deepEqual(extentOf(panel, "x"), { low: 0.5, high: 2.5 });
});

test("a place leads back to its value", () => {
  for (const logarithmic of [false, true]) {
    const scale = makeScale({
      axis: axis({ logarithmic }),
      extent: { low: 2, high: 900 },
      from: 300,
      to: 20,
      ticks: 5,
    });
    assert.ok(Math.abs(scale.valueAt(scale.place(77)) - 77) < 1e-9);
  }
});

test("what is not positive has no place on a logarithmic axis", () => {
  const options = { extent: { low: 1, high: 9 }, from: 0, to: 1, ticks: 5 };
  assert.ok(Number.isNaN(makeScale({ axis: axis({ logarithmic: true }), ...options }).place(0)));
});

test("an axis of nothing is linear and has ticks", () => {
  const extent = { low: Infinity, high: -Infinity };
  const scale = makeScale({ axis: axis({ logarithmic: true }), extent, from: 0, to: 1, ticks: 5 });
  assert.equal(scale.logarithmic, false);
  assert.ok(scale.ticks.length > 1);
});

test("bars that share no place stand in the middle of theirs", () => {
  const bars = (x: number[]): Series => ({ name: "s", role: "", mark: "bars", x, y: x.map(() => 1) });
  const apart = { ...panelOf({}), series: [bars([0]), bars([1])] };
  assert.deepEqual(apart.series.map((series) => slotOf(apart, series).offset), [0, 0]);
  assert.ok(slotOf(apart, apart.series[0]!).width > 0.7);
  const together = { ...panelOf({}), series: [bars([0]), bars([0])] };
  assert.ok(slotOf(together, together.series[0]!).offset < 0);
  assert.ok(slotOf(together, together.series[1]!).offset > 0);
});

test("bars stand on the base of their axis, and the axis shows it", () => {
  const ratios = (options: Partial<Axis>) => {
    const y = axis({ base: 1, ...options });
    const series = [{ name: "", role: "", mark: "bars" as const, x: [0, 1], y: [0.4, 0.8] }];
    const extent = extentOf({ title: "", x: axis({ categories: ["a", "b"] }), y, series }, "y");
    assert.deepEqual(extent, { low: 0.4, high: 1 });
    return makeScale({ axis: y, extent, from: 100, to: 0, ticks: 4 });
  };
  for (const logarithmic of [false, true]) {
    const scale = ratios({ logarithmic });
    assert.equal(scale.foot, scale.place(1));
    assert.ok(scale.foot > 0 && scale.foot < scale.place(0.8));
  }
});
