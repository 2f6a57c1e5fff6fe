// The order and the search of the list of jobs.
import type { JobOverview } from "./types";
import { lastRunAt, learningText } from "./words";

export type Column = "job" | "learning" | "batch" | "saved" | "runs" | "last";

// The key by which a column is sorted; null comes last.
function keyOf(overview: JobOverview, column: Column): string | number | null {
  switch (column) {
    case "job":
      return overview.job.spec.id;
    case "learning":
      return overview.next ? Number(overview.next.settled) : null;
    case "batch":
      return overview.next?.batch_size ?? null;
    case "saved":
      return overview.savings.saved ? -overview.savings.saved.energy_percent : null;
    case "runs":
      return overview.job.recurrences;
    case "last":
      return lastRunAt(overview);
  }
}

export interface Order {
  column: Column;
  down: boolean;
}

export function sortedJobs(jobs: JobOverview[], order: Order): JobOverview[] {
  const sign = order.down ? -1 : 1;
  return [...jobs].sort((a, b) => {
    const [left, right] = [keyOf(a, order.column), keyOf(b, order.column)];
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    if (typeof left === "string") return sign * left.localeCompare(String(right), "en", { numeric: true });
    return sign * (left - Number(right));
  });
}

export function matches(overview: JobOverview, wanted: string): boolean {
  const { spec, stage } = overview.job;
  const labels = Object.entries(spec.labels).map(([name, value]) => `${name}:${value}`);
  const words = [spec.id, spec.gpu_model, spec.policy, stage, learningText(overview.next), ...labels];
  return words.some((word) => word.toLowerCase().includes(wanted));
}
