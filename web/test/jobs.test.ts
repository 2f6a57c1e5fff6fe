import assert from "node:assert/strict";
import { test } from "node:test";
import { frontierFigure, planFigure, recurrencesFigure, weeksFigure } from "../src/jobs/figures";
import { matches, sortedJobs } from "../src/jobs/job_order";
import { energyText } from "../src/app/quantity";
import type { Arms, CurrentPlan, JobOverview, Recurrence, SpanSavings } from "../src/jobs/types";
import { boundsPath, weekBegin, weekBounds } from "../src/jobs/weeks";
import { differenceText, etaText, kindOf, learningText, savedText } from "../src/jobs/words";

function overview(id: string, percent: number | null, settled: boolean, last: string | null): JobOverview {
  return {
    job: {
      spec: { id, gpu_model: "V100", policy: "zeus", labels: { team: "vision" } },
      stage: "sampling",
      recurrences: 3,
    },
    next: { batch_size: 32, role: "exploiting", why: "", settled, outlook: "" },
    savings: { saved: percent === null ? null : { energy_percent: percent, energy_sigma_percent: 1.5 } },
    latest_trial: last === null ? null : { started_at: last, ended_at: null },
    running: [],
  } as unknown as JobOverview;
}

const jobs = [
  overview("b2", 10, true, "2026-11-01T00:00:00Z"),
  overview("b10", null, false, null),
  overview("a", 30, true, "2026-11-03T00:00:00Z"),
];
const names = (list: JobOverview[]) => list.map(({ job }) => job.spec.id);

test("jobs are sorted by name as people count, and what is not known comes last", () => {
  assert.deepEqual(names(sortedJobs(jobs, { column: "job", down: false })), ["a", "b2", "b10"]);
  assert.deepEqual(names(sortedJobs(jobs, { column: "saved", down: false })), ["a", "b2", "b10"]);
  assert.deepEqual(names(sortedJobs(jobs, { column: "saved", down: true })), ["b2", "a", "b10"]);
  assert.deepEqual(names(sortedJobs(jobs, { column: "last", down: true })), ["a", "b2", "b10"]);
  assert.deepEqual(names(sortedJobs(jobs, { column: "learning", down: false })), ["b10", "b2", "a"]);
});

test("jobs are found by name, label, model and state", () => {
  assert.ok(matches(jobs[0]!, "b2"));
  assert.ok(matches(jobs[0]!, "team:vis"));
  assert.ok(matches(jobs[0]!, "v100"));
  assert.ok(matches(jobs[0]!, "done"));
  assert.ok(!matches(jobs[1]!, "done"));
});

test("savings are changes with their uncertainty, or not known", () => {
  assert.equal(savedText(jobs[2]!.savings), "-30.0 ± 1.5 %");
  assert.equal(savedText(jobs[1]!.savings), "not known yet");
  assert.equal(learningText(null), "–");
});

test("what was saved and what was taken on top differ by a word", () => {
  assert.equal(differenceText(111_000, 15_000, energyText), "111 ± 15 kJ saved");
  assert.equal(differenceText(-34_000, 44_000, energyText), "34 ± 44 kJ more");
});

function recurrence(more: Partial<Recurrence>): Recurrence {
  return {
    recurrence: 0, tries: 1, batch_size: 32, first_batch_size: 32, gpu_model: "V100", role: "exploiting",
    converged: true, under_way: false, failed: false, profiling: false, shared: false, unmeasured: false,
    started_at: "2026-11-01T00:00:00Z", ended_at: "2026-11-01T00:01:00Z", energy_joules: 100,
    time_seconds: 60, cost_joules: 100, ...more,
  };
}

test("a recurrence is what matters most about it", () => {
  assert.equal(kindOf(recurrence({})), "used");
  assert.equal(kindOf(recurrence({ profiling: true })), "profiling");
  assert.equal(kindOf(recurrence({ profiling: true, role: "exploring" })), "exploring");
  assert.equal(kindOf(recurrence({ role: "exploring", converged: false })), "stopped");
  assert.equal(kindOf(recurrence({ converged: false, failed: true })), "failed");
  assert.equal(kindOf(recurrence({ role: "baseline", profiling: true })), "baseline");
  assert.equal(kindOf(recurrence({ under_way: true, converged: false })), "running");
});

test("every ended recurrence is in the chart once, with what it was", () => {
  const list = [
    recurrence({}),
    recurrence({ recurrence: 1, role: "exploring", batch_size: 64, tries: 2 }),
    recurrence({ recurrence: 2, under_way: true, converged: false }),
  ];
  const [costs, sizes] = recurrencesFigure(list, [16, 32, 64]).panels;
  assert.deepEqual(costs!.series.map(({ name, x }) => [name, x]), [["used what is known", [0]], ["explored", [1]]]);
  assert.deepEqual(sizes!.series.map(({ y }) => y), [[1], [2]]);
  assert.match(costs!.series[1]!.labels![0]!, /^recurrence 1: batch size 64, .*, 2 tries$/);
});

test("weeks begin on Monday at the reader's midnight and follow each other", () => {
  const sunday = new Date(2026, 10, 22, 23, 59);
  assert.equal(weekBegin(sunday).getDay(), 1);
  assert.equal(weekBegin(sunday).getDate(), 16);
  const bounds = weekBounds(3, sunday);
  assert.equal(bounds.length, 4);
  for (const bound of bounds) assert.deepEqual([bound.getDay(), bound.getHours()], [1, 0]);
  assert.ok(bounds[2]! <= sunday && sunday < bounds[3]!);
  assert.match(boundsPath(bounds), /^v1\/savings\?bounds=[\dT:.Z,-]+$/);
});

test("weeks are bars of kilowatt-hours with whiskers", () => {
  const span = { from: "2026-11-16T00:00:00Z", energy_joules: 7.2e6, energy_sigma_joules: 3.6e6, jobs: 2, recurrences: 9 };
  const [bars] = weeksFigure([span as SpanSavings]).panels[0]!.series;
  assert.deepEqual([bars!.y, bars!.low, bars!.high], [[2], [1], [3]]);
});

test("another eta is told with its changes, or that they are not known", () => {
  const arms = { eta: 1, best_batch_size: 32, own_best_batch_size: 64, energy_change: { percent: -12.3, sigma_percent: 4 }, time_change: { percent: 20, sigma_percent: 5 } } as Arms;
  assert.equal(
    etaText(arms),
    "With eta 1, batch size 32 would be the choice: a training took -12.3 ± 4.0 % energy and +20.0 ± 5.0 % time against batch size 64.",
  );
  assert.match(etaText({ ...arms, energy_change: null }), /was not measured/);
  assert.match(etaText({ ...arms, own_best_batch_size: 32 }), /would be the choice, too/);
});

test("a plan is a timeline of stages, coloured by power", () => {
  const one = { instruction: "forward", microbatch: 3, chunk: 0, clock_mhz: 1200, start_seconds: 1, time_seconds: 2, energy_joules: 300 };
  const plan = { stages: [[one], [{ ...one, instruction: "backward", energy_joules: 500 }]], time_seconds: 4, energy_joules: 800 };
  const panel = planFigure(plan as unknown as CurrentPlan["plan"]).panels[0]!;
  const spans = panel.series[0]!;
  assert.deepEqual([spans.x, spans.until, spans.y, spans.heat], [[1, 1], [3, 3], [0, 1], [150, 250]]);
  assert.deepEqual(spans.span_names, ["F3", "B3"]);
  assert.deepEqual([panel.colour_scale!.low, panel.colour_scale!.high], [150, 250]);
  const points = [[6, 810], [4, 800], [5, 700]].map(([time, energy]) => ({ time_seconds: time!, energy_joules: energy! }));
  const frontier = { fastest_time_seconds: 3, baseline_time_seconds: 4, baseline_energy_joules: 900, points };
  const figure = frontierFigure(frontier, { plan } as unknown as CurrentPlan);
  assert.deepEqual(figure.panels[0]!.series.map(({ x }) => x), [[4, 5], [4], [4]]);
});
