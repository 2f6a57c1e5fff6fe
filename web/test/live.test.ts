import assert from "node:assert/strict";
import { test } from "node:test";
import { foundNodes, Pasts, rowsInSight, sortedNodes } from "../src/live/fleet_rows";
import { levelFor, PowerTrack } from "../src/live/power_track";
import type { Knob } from "../src/live/types";
import { faultsOf, holderText, idleNow, knobText, throttleText, valueText, wasteText } from "../src/live/words";

const means = (track: PowerTrack, level: number, from: number, to: number) => {
  const ring = track.rings[level]!;
  const found = [];
  for (let step = from; step < to; ++step) {
    const place = ring.at(step);
    found.push(place < 0 || Number.isNaN(ring.mean[place]!) ? null : ring.mean[place]);
  }
  return found;
};

test("readings fill steps of every length, and what is missing stays empty", () => {
  const track = new PowerTrack();
  for (let i = 0; i < 50; ++i) if (i < 20 || i >= 30) track.addReading(100 + i / 10, i < 20 ? 100 : 300);
  assert.deepEqual(means(track, 1, 99, 106), [null, 100, 100, null, 300, 300, null]);
  assert.equal(Math.round(means(track, 2, 10, 11)[0]!), 200);
});

test("the server's history replaces readings, and its empty steps do not", () => {
  const track = new PowerTrack();
  track.addReading(100.5, 111);
  track.addReading(101.5, 222);
  track.addHistory(1, 98, { mean: [10, 20, 90, null, 5], idle: [10, 0, 45, null, 0] });
  // The last step of an answer has not ended yet.
  assert.deepEqual(means(track, 1, 98, 103), [10, 20, 90, 222, null]);
  track.addReading(100.9, 999);
  assert.equal(means(track, 1, 100, 101)[0], 90);
  const sum = track.sum(1, 98, 101);
  assert.deepEqual(sum, { energy: 120, idle: 55, idleSeconds: 1.5, seconds: 3 });
});

test("time without work is what its energy lasts at the power of such seconds", () => {
  const track = new PowerTrack();
  // Four of ten seconds at 65 W, six at 290 W.
  track.addHistory(10, 100, { mean: [200, 0], low: [65, 0], high: [290, 0], idle: [26, 0] });
  assert.equal(track.sum(2, 100, 110).idleSeconds, 4);
});

test("a day of readings takes the memory of the first minute", () => {
  const track = new PowerTrack();
  for (let second = 0; second < 86400; second += 0.5) track.addReading(second, second);
  const sizes = track.rings.map((ring) => ring.mean.length);
  assert.deepEqual(sizes, track.rings.map(({ level }) => level.size));
  assert.equal(means(track, 1, 86398, 86399)[0], 86398.25);
  assert.deepEqual(means(track, 1, 10, 11), [null]);
  assert.notEqual(means(track, 3, 10, 11)[0], null);
});

test("a span is shown in the finest steps that cover it", () => {
  assert.deepEqual([60, 600, 7200, 172800].map(levelFor), [0, 1, 2, 3]);
});

const knob: Knob = {
  device: "GPU-1", knob: "gpu_power_limit", words: "power limit", effective: { watts: 220 }, enforced: { watts: 220 },
  baseline: { watts: 400 }, foreign: false, suspended: false, leases: 1,
};

test("who holds a knob is told as far as it is known", () => {
  const since = "2026-01-01T12:00:00Z";
  assert.equal(holderText({ ...knob, bound_by: { class: "site", since } }), "a site lease (a power budget; zeus lease list names it to administrators)");
  assert.equal(
    knobText({ ...knob, bound_by: { class: "job", since, name: "bert", subject: "uid:1001" } }),
    "set by a job lease “bert” of uid:1001",
  );
  assert.equal(knobText({ ...knob, foreign: true }), "set by another program, which is respected");
  assert.equal(knobText(knob), "");
});

test("values, throttles and faults are words", () => {
  assert.equal(valueText({ lowest_hertz: 1.2e9, highest_hertz: 1.38e9 }), "1200 to 1380 MHz");
  assert.equal(valueText({ hertz: 1.38e9 }), "1380 MHz");
  assert.equal(valueText(null), "the default");
  assert.equal(throttleText(["power_cap", "thermal"]), "held back by its power limit and slowed down by heat");
  const gpu = { device: "GPU-1", name: "gpu:1", index: 1, model: "A100", uuid: "GPU-1", pci_address: "", vendor: "", driver: "" };
  assert.deepEqual(faultsOf(gpu, { device: "GPU-1", power_watts: 50, throttle: ["power_cap"] }, []), []);
  assert.match(faultsOf(gpu, { device: "GPU-1", throttle: ["thermal"] }, [])[0]!.what, /gpu:1 is slowed down by heat/);
  const lost = faultsOf({ ...gpu, lost: true }, { device: "GPU-1", reason: "gone" }, []);
  assert.equal(lost.length, 1);
  assert.equal(lost[0]!.tone, "bad");
});

test("power without work is waste", () => {
  assert.equal(idleNow({ device: "a", power_watts: 52, compute_utilization: 0.01 }), 52);
  assert.equal(idleNow({ device: "a", power_watts: 52, compute_utilization: 0.5 }), 0);
  assert.equal(idleNow({ device: "a", power_watts: 52 }), 0);
  assert.equal(
    wasteText({ device: "a", name: "gpu:1", watts: 52, joules: 187200, seconds: 3600, known: 3600 }),
    "gpu:1 had nothing to do for the whole last hour and drew 52 Wh meanwhile (52.0 W)",
  );
});

test("nodes that waste most come first, and silent ones last", () => {
  const nodes = [
    { name: "a", url: "", trouble: "no answer" },
    { name: "b", url: "", trouble: "", power_watts: 900, idle_watts: 10, above_watts: 5 },
    { name: "c", url: "", trouble: "", power_watts: 100, idle_watts: 90 },
  ];
  const names = (column: "waste" | "power" | "node", descending: boolean) => sortedNodes(nodes, column, descending).map(({ name }) => name).join("");
  assert.equal(names("waste", true), "cba");
  assert.equal(names("waste", false), "bca");
  assert.equal(names("power", true), "bca");
  assert.equal(names("node", true), "cba");
  assert.deepEqual(foundNodes(nodes, "ANSWER").map(({ name }) => name), ["a"]);
});

test("of a thousand rows those in sight exist", () => {
  assert.deepEqual(rowsInSight(1000, 0, 400, 40), { first: 0, last: 24 });
  assert.deepEqual(rowsInSight(1000, 20000, 400, 40), { first: 492, last: 524 });
  assert.deepEqual(rowsInSight(1000, 39600, 400, 40), { first: 980, last: 1000 });
  assert.deepEqual(rowsInSight(3, 0, 400, 40), { first: 0, last: 3 });
  // A search left three rows of a list that was scrolled far down.
  assert.deepEqual(rowsInSight(3, 20000, 400, 40), { first: 3, last: 3 });
});

test("rows exist well before they are seen, and change once in four", () => {
  const seen = new Set<string>();
  for (let scrolled = 0; scrolled < 36_000; ++scrolled) {
    const { first, last } = rowsInSight(1000, scrolled, 400, 40);
    assert.ok(first * 40 <= Math.max(0, scrolled - 160) && last * 40 >= Math.min(40_000, scrolled + 400 + 160), `${scrolled}`);
    seen.add(`${first} ${last}`);
  }
  assert.ok(seen.size <= 36_000 / 40 / 4, `${seen.size}`);
});

test("the past of a node goes on with every answer that is new", () => {
  const pasts = new Pasts();
  const node = { name: "a", url: "", trouble: "", power_watts: 5, age_seconds: 1 };
  pasts.take({ time: "", nodes: [{ ...node, past_watts: [1, null, 2] }] });
  pasts.take({ time: "", nodes: [{ ...node, age_seconds: 6 }] });
  assert.deepEqual(pasts.of("a"), [1, null, 2]);
  pasts.take({ time: "", nodes: [{ ...node, age_seconds: 1 }] });
  assert.deepEqual(pasts.of("a"), [1, null, 2, 5]);
  for (let i = 0; i < 200; ++i) pasts.take({ time: "", nodes: [node] });
  assert.equal(pasts.of("a").length, Pasts.most);
});
