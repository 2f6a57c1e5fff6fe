// Charts of jobs and pipelines, as data for the charts that reports have, too.
import { energyText, timeText, withSigma } from "../app/quantity";
import type { Panel, Series } from "../charts/types";
import type { Figure } from "../report/types";
import type { CurrentPlan, Plan, PlanFrontier, Recurrence, SpanSavings } from "./types";
import { kindOf, recurrenceText } from "./words";
import type { RecurrenceKind } from "./words";
import { weekName } from "./weeks";

function empty(name: string, role: string, mark: Series["mark"] = "points"): Series {
  return { name, role, mark, x: [], y: [], labels: [] };
}

function add(series: Series, x: number, y: number, label: string): void {
  series.x.push(x);
  series.y.push(y);
  series.labels!.push(label);
}

// In the order of the legend. The role is a colour of the palette.
const kinds: [RecurrenceKind, string, string][] = [
  ["used", "used what is known", "zeus"],
  ["exploring", "explored", "knowledge_gradient"],
  ["profiling", "profiled power limits", "grid"],
  ["stopped", "target not reached", "front"],
  ["failed", "failed", "paper"],
  ["baseline", "undisturbed default", "default"],
];

const mostNamed = 20;

export function recurrencesFigure(recurrences: Recurrence[], batchSizes: number[]): Figure {
  // An axis of few numbers would have fractions between them.
  const named = recurrences.length <= mostNamed;
  const series = () => new Map(kinds.map(([kind, name, role]) => [kind, empty(name, role)]));
  const [costs, sizes] = [series(), series()];
  for (const [i, recurrence] of recurrences.entries()) {
    const place = named ? i : recurrence.recurrence;
    const kind = kindOf(recurrence);
    const label = recurrenceText(recurrence);
    const row = batchSizes.indexOf(recurrence.batch_size);
    const cost = costs.get(kind);
    if (!cost) continue; // It is running: its cost is not known yet.
    add(cost, place, recurrence.cost_joules / 1e3, label);
    add(sizes.get(kind)!, place, row, label);
  }
  const drawn = (all: Map<RecurrenceKind, Series>) => [...all.values()].filter(({ x }) => x.length > 0);
  const categories = named ? { categories: recurrences.map((one) => String(one.recurrence)) } : {};
  const x = { title: "recurrence", logarithmic: false, from_zero: false, ...categories };
  const panels: Panel[] = [
    {
      title: "",
      x,
      y: { title: "cost of a recurrence (kJ)", logarithmic: false, from_zero: true },
      series: drawn(costs),
    },
    {
      title: "",
      x,
      y: { title: "batch size", logarithmic: false, from_zero: false, categories: batchSizes.map(String) },
      series: drawn(sizes),
    },
  ];
  return {
    id: "recurrences",
    title: "Cost by recurrence",
    caption: "A recurrence is one training, with all its tries. Runs under way are not drawn.",
    panels,
  };
}

const joulesPerKilowattHour = 3.6e6;

export function weeksFigure(spans: SpanSavings[]): Figure {
  const bars: Series = { ...empty("saved energy", "zeus", "bars"), low: [], high: [] };
  spans.forEach((span, i) => {
    const [value, sigma] = [span.energy_joules, span.energy_sigma_joules].map((v) => v / joulesPerKilowattHour) as [number, number];
    add(bars, i, value, `${span.recurrences} trainings of ${span.jobs} jobs: ${withSigma(value, sigma, "kWh")}`);
    bars.low!.push(value - sigma);
    bars.high!.push(value + sigma);
  });
  const panel: Panel = {
    title: "",
    x: {
      title: "week that begins on",
      logarithmic: false,
      from_zero: false,
      categories: spans.map((span) => weekName(new Date(span.from))),
    },
    y: { title: "saved (kWh)", logarithmic: false, from_zero: true },
    series: [bars],
  };
  return {
    id: "savings",
    title: "Saved energy by week",
    caption:
      "Against undisturbed runs of the default, with exploration, profiling and failed runs charged. The lines show one standard deviation.",
    panels: [panel],
  };
}

// The points that take less energy than every faster one, by time. Beyond the last of them GPUs wait
// longer for each other than slower clocks save, and no plan is made there.
export function usefulPoints(frontier: PlanFrontier): PlanFrontier["points"] {
  const points = [...frontier.points].sort((a, b) => a.time_seconds - b.time_seconds);
  let least = Infinity;
  return points.filter((point) => {
    if (point.energy_joules >= least) return false;
    least = point.energy_joules;
    return true;
  });
}

export function frontierFigure(frontier: PlanFrontier, current: CurrentPlan): Figure {
  const line = empty("frontier", "zeus", "line");
  for (const point of usefulPoints(frontier))
    add(
      line,
      point.time_seconds,
      point.energy_joules,
      `${timeText(point.time_seconds)}, ${energyText(point.energy_joules)}`,
    );
  const plan = empty("the plan that holds", "knowledge_gradient");
  add(plan, current.plan.time_seconds, current.plan.energy_joules, "the plan that holds");
  const baseline = empty("highest clocks", "default");
  add(baseline, frontier.baseline_time_seconds, frontier.baseline_energy_joules, "every computation at its highest clock");
  const panel: Panel = {
    title: "",
    x: { title: "time of an iteration (s)", logarithmic: false, from_zero: false },
    y: { title: "energy of an iteration (J)", logarithmic: false, from_zero: false },
    series: [line, plan, baseline],
  };
  return {
    id: "frontier",
    title: "Frontier",
    caption: "The least energy of an iteration for every time that it may take. Slower ones than the last take more.",
    panels: [panel],
  };
}

const letters: Record<string, string> = { forward: "F", backward: "B", recompute: "R", weight: "W" };

function timeline(plan: Plan): Panel {
  const spans: Series = { ...empty("", "", "spans"), until: [], heat: [], span_names: [] };
  plan.stages.forEach((instructions, stage) => {
    for (const one of instructions) {
      const clock = one.clock_mhz > 0 ? `, ${one.clock_mhz} MHz` : "";
      add(
        spans,
        one.start_seconds,
        stage,
        `${one.instruction} ${one.microbatch} of stage ${stage}${clock}, ${energyText(one.energy_joules)}`,
      );
      spans.until!.push(one.start_seconds + one.time_seconds);
      spans.heat!.push(one.time_seconds > 0 ? one.energy_joules / one.time_seconds : 0);
      spans.span_names!.push(`${letters[one.instruction] ?? one.instruction[0] ?? ""}${one.microbatch}`);
    }
  });
  const powers = spans.heat!.filter((power) => power !== null);
  return {
    title: "",
    x: { title: "time (s)", logarithmic: false, from_zero: true },
    y: {
      title: "stage",
      logarithmic: false,
      from_zero: false,
      categories: plan.stages.map((_, stage) => String(stage)),
    },
    series: [spans],
    colour_scale: { title: "power (W)", low: Math.min(...powers), high: Math.max(...powers) },
  };
}

export function planFigure(plan: Plan): Figure {
  return {
    id: "plan",
    title: "One iteration",
    caption: "Each box is a computation of a stage; darker ones draw more power. Gaps are spent waiting.",
    panels: [timeline(plan)],
  };
}
