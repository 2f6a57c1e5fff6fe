// The numbers of a job in words. No page is needed to test these.
import { changeWithSigma, energyText, timeText, unknown } from "../app/quantity";
import type { Arms, Change, JobOverview, NextChoice, Recurrence, Savings, Trial } from "./types";

// "Done for now" is what an operator wants to know at a glance.
export function learningText(next: NextChoice | null): string {
  if (!next) return unknown;
  return next.settled ? "done for now" : "learning";
}

// "-30.1 ± 9.1 %": less energy is a negative change, as in zeus job savings.
export function savedText(savings: Savings): string {
  if (!savings.saved) return "not known yet";
  return changeWithSigma(-savings.saved.energy_percent, savings.saved.energy_sigma_percent);
}

// "34 ± 44 kJ more", "111 ± 15 kJ saved": a sign alone would have to be guessed.
export function differenceText(saved: number, sigma: number, text: (value: number, sigma: number) => string): string {
  return `${text(Math.abs(saved), sigma)} ${saved < 0 ? "more" : "saved"}`;
}

export function changeText(change: Change | null): string {
  return change ? changeWithSigma(change.percent, change.sigma_percent) : unknown;
}

// The moment of the last sign of a job.
export function lastRunAt(overview: JobOverview): string | null {
  const trial = overview.latest_trial;
  return trial ? (trial.ended_at ?? trial.started_at) : null;
}

// How a run ended; its reason follows, which says whether the target was reached.
export function endText(trial: Trial): string {
  if (trial.status === "failed") return "failed";
  return trial.status === "expired" ? "was lost, not heard of for too long," : "ended";
}

export const roleTexts: Record<Trial["role"], string> = {
  exploring: "explores",
  concurrent: "while another explores",
  exploiting: "uses what is known",
  baseline: "undisturbed default",
};

// The group of a recurrence in the chart: a failure counts most, then why it ran.
export function kindOf(recurrence: Recurrence): RecurrenceKind {
  if (recurrence.under_way) return "running";
  if (recurrence.role === "baseline") return "baseline";
  if (!recurrence.converged) return recurrence.failed ? "failed" : "stopped";
  if (recurrence.role === "exploring") return "exploring";
  return recurrence.profiling ? "profiling" : "used";
}

export type RecurrenceKind =
  | "used"
  | "exploring"
  | "profiling"
  | "stopped"
  | "failed"
  | "baseline"
  | "running";

export function recurrenceText(recurrence: Recurrence): string {
  const parts = [
    `recurrence ${recurrence.recurrence}: batch size ${recurrence.batch_size}`,
    `${energyText(recurrence.energy_joules)}, ${timeText(recurrence.time_seconds)}`,
  ];
  if (recurrence.tries > 1) parts.push(`${recurrence.tries} tries`);
  if (recurrence.profiling) parts.push("profiled power limits");
  if (recurrence.shared) parts.push("shared its GPUs");
  if (recurrence.unmeasured) parts.push("energy not known well enough");
  return parts.join(", ");
}

// The choice of another eta, as one sentence.
export function etaText(arms: Arms): string {
  if (arms.best_batch_size === arms.own_best_batch_size)
    return `With eta ${arms.eta}, batch size ${arms.best_batch_size} would be the choice, too.`;
  const measured = arms.energy_change && arms.time_change;
  const change = measured
    ? `a training took ${changeText(arms.energy_change)} energy and ${changeText(arms.time_change)} time against batch size ${arms.own_best_batch_size}`
    : `how a training compares with batch size ${arms.own_best_batch_size} was not measured`;
  return `With eta ${arms.eta}, batch size ${arms.best_batch_size} would be the choice: ${change}.`;
}
