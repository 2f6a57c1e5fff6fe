// The order, the shares and the words of the page of budgets, without the page.
import { percentText, powerText, unknown } from "../app/quantity";
import type { Budget, BudgetDomain, BudgetJob, BudgetTarget } from "./types";

export interface TreeRow {
  domain: BudgetDomain;
  depth: number; // 0 for a root.
}

// Domains in the order in which a tree is read: each before those inside it. Whatever the server
// sends, every domain appears once.
export function treeOf(domains: BudgetDomain[]): TreeRow[] {
  const names = new Set(domains.map(({ name }) => name));
  const inside = new Map<string | null, BudgetDomain[]>();
  for (const domain of domains) {
    const parent = domain.parent !== null && names.has(domain.parent) ? domain.parent : null;
    inside.set(parent, [...(inside.get(parent) ?? []), domain]);
  }
  const rows: TreeRow[] = [];
  const seen = new Set<BudgetDomain>();
  const walk = (parent: string | null, depth: number) => {
    for (const domain of inside.get(parent) ?? []) {
      if (seen.has(domain)) continue;
      seen.add(domain);
      rows.push({ domain, depth });
      walk(domain.name, depth + 1);
    }
  };
  walk(null, 0);
  for (const domain of domains) if (!seen.has(domain)) rows.push({ domain, depth: 0 });
  return rows;
}

// The parts of a bar, as shares of the widest that it can be: the budget, or what is committed while
// that is still more.
export function barOf(domain: BudgetDomain): { drawn: number; committed: number; limit: number } {
  const whole = Math.max(domain.watts, domain.committed_watts, domain.drawn_watts, 1);
  const share = (watts: number) => Math.min(Math.max(watts / whole, 0), 1);
  return { drawn: share(domain.drawn_watts), committed: share(domain.committed_watts), limit: share(domain.limit_watts) };
}

export function slowdownText(slowdown: number | null): string {
  return slowdown === null ? unknown : percentText(Math.max(slowdown - 1, 0));
}

// "0.12 % of a GPU": one more watt saves so much of the time of one GPU.
export function priceText(price: number): string {
  if (!(price > 0)) return "nothing";
  const percent = 100 * price;
  return `${percent >= 0.01 ? percent.toPrecision(2) : "< 0.01"} % of a GPU`;
}

// The GPUs' time that the job loses: who pays most comes first.
export function paid(job: BudgetJob): number {
  return job.gpus * (job.slowdown - 1);
}

export function byPayment(jobs: BudgetJob[]): BudgetJob[] {
  return [...jobs].sort((a, b) => paid(b) - paid(a) || a.name.localeCompare(b.name));
}

export function paidText(job: BudgetJob): string {
  const gpus = paid(job);
  return gpus > 0.0005 ? `${gpus.toPrecision(2)} GPUs` : "nothing";
}

export function notesOf(job: BudgetJob): string {
  const notes = [];
  if (job.bound_missed) notes.push("slower than its max_slowdown");
  if (job.assumed) notes.push("its power curve is assumed");
  return notes.join(", ");
}

// The state of the whole budget in a sentence.
export function stateOf(budget: Budget): { tone: "good" | "warn" | "bad"; text: string } {
  const root = budget.domains[0];
  if (!root) return { tone: "warn", text: "There is no domain yet." };
  if (budget.infeasible)
    return { tone: "bad", text: `${powerText(budget.missing_watts)} are missing: even the lowest limits exceed the budget.` };
  const over = budget.domains.filter((domain) => domain.committed_watts > domain.limit_watts + 0.5);
  if (over.length > 0)
    return { tone: "warn", text: `${over.map(({ name }) => name).join(", ")}: caps are on their way down to a lower budget.` };
  const silent = budget.nodes.filter((node) => node.silent).length;
  if (silent > 0)
    return { tone: "warn", text: `${silent} ${silent === 1 ? "node does" : "nodes do"} not report; their watts stay reserved.` };
  return { tone: "good", text: "Everything that is committed fits." };
}

// Targets that are not over, the next one first.
export function toCome(targets: BudgetTarget[], now: Date): BudgetTarget[] {
  return targets
    .filter((target) => Date.parse(target.end) > now.getTime())
    .sort((a, b) => Date.parse(a.start) - Date.parse(b.start));
}
