import assert from "node:assert/strict";
import { test } from "node:test";
import { barOf, byPayment, notesOf, paidText, priceText, slowdownText, stateOf, toCome, treeOf } from "../src/budget/budget";
import type { Budget, BudgetDomain, BudgetJob } from "../src/budget/types";

const domain = (name: string, parent: string | null, more: Partial<BudgetDomain> = {}): BudgetDomain => ({
  name,
  parent,
  watts: 1000,
  limit_watts: 980,
  committed_watts: 900,
  drawn_watts: 700,
  free_watts: 80,
  price_per_watt: 0,
  ...more,
});

const job = (name: string, more: Partial<BudgetJob> = {}): BudgetJob => ({
  name,
  gpus: 1,
  weight: 1,
  limit_watts: 200,
  taken_watts: 200,
  slowdown: 1,
  marginal_per_watt: 0,
  bound_missed: false,
  assumed: false,
  ...more,
});

const budget = (more: Partial<Budget> = {}): Budget => ({
  domains: [domain("site", null)],
  nodes: [],
  infeasible: false,
  missing_watts: 0,
  mean_slowdown: 1.01,
  worst_slowdown: 1.2,
  troubles: [],
  ...more,
});

test("each domain stands before those inside it, whatever their order", () => {
  const rows = treeOf([domain("rack-1", "room"), domain("site", null), domain("rack-2", "room"), domain("room", "site")]);
  assert.deepEqual(
    rows.map(({ domain: { name }, depth }) => [name, depth]),
    [["site", 0], ["room", 1], ["rack-1", 2], ["rack-2", 2]],
  );
});

test("domains in a circle, and those whose parent is not known, appear once", () => {
  const rows = treeOf([domain("a", "b"), domain("b", "a"), domain("c", "nowhere")]);
  assert.deepEqual(rows.map(({ domain: { name } }) => name).sort(), ["a", "b", "c"]);
});

test("a bar is as wide as the budget, or as what is still committed above it", () => {
  assert.deepEqual(barOf(domain("a", null)), { drawn: 0.7, committed: 0.9, limit: 0.98 });
  assert.deepEqual(barOf(domain("a", null, { committed_watts: 2000 })), { drawn: 0.35, committed: 1, limit: 0.49 });
  assert.deepEqual(barOf(domain("a", null, { watts: 0, limit_watts: 0, committed_watts: 0, drawn_watts: 0 })), {
    drawn: 0,
    committed: 0,
    limit: 0,
  });
});

test("those who pay most come first", () => {
  const jobs = [job("light", { slowdown: 1.1 }), job("none"), job("wide", { slowdown: 1.05, gpus: 8 })];
  assert.deepEqual(byPayment(jobs).map(({ name }) => name), ["wide", "light", "none"]);
  assert.equal(paidText(jobs[1]!), "nothing");
  assert.equal(paidText(jobs[2]!), "0.40 GPUs");
});

test("slowdowns, prices and notes are words", () => {
  assert.equal(slowdownText(1.0123), "1.2 %");
  assert.equal(slowdownText(null), "–");
  assert.equal(priceText(0), "nothing");
  assert.equal(priceText(0.0012), "0.12 % of a GPU");
  assert.equal(priceText(1e-6), "< 0.01 % of a GPU");
  assert.equal(notesOf(job("a", { assumed: true, bound_missed: true })), "slower than its max_slowdown, its power curve is assumed");
});

test("the state of the budget is the worst that is true", () => {
  assert.equal(stateOf(budget()).tone, "good");
  const silent = { name: "n1", domain: "site", silent: true, guarded: true, committed_watts: 1, devices: [] };
  assert.match(stateOf(budget({ nodes: [silent] })).text, /1 node does not report/);
  assert.match(stateOf(budget({ domains: [domain("site", null, { committed_watts: 990 })], nodes: [silent] })).text, /on their way down/);
  assert.match(stateOf(budget({ infeasible: true, missing_watts: 50 })).text, /50.0 W are missing/);
  assert.equal(stateOf(budget({ domains: [] })).tone, "warn");
});

test("targets that are over are left out", () => {
  const target = (id: string, start: string, end: string) => ({ id, domain: null, start, end, watts: 1, reason: "" });
  const now = new Date("2026-11-20T18:00:00Z");
  const coming = toCome(
    [
      target("later", "2026-11-21T00:00:00Z", "2026-11-21T01:00:00Z"),
      target("now", "2026-11-20T17:00:00Z", "2026-11-20T20:00:00Z"),
      target("over", "2026-11-20T10:00:00Z", "2026-11-20T17:59:00Z"),
    ],
    now,
  );
  assert.deepEqual(coming.map(({ id }) => id), ["now", "later"]);
});
