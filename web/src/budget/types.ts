// The answers of /v1/budget and below (docs/budget.md).

export interface BudgetDomain {
  name: string;
  parent: string | null;
  watts: number; // The budget, or the target that holds now.
  limit_watts: number; // The same without the reserve and on its ramp: what may be committed.
  committed_watts: number;
  drawn_watts: number;
  free_watts: number;
  price_per_watt: number; // Slowdown x GPUs x weight that one more watt would save.
}

export interface BudgetNode {
  name: string;
  domain: string;
  silent: boolean;
  guarded: boolean;
  committed_watts: number;
  devices: { id: string; model: string; cap_watts: number; committed_watts: number; drawn_watts: number | null }[];
}

export interface Budget {
  domains: BudgetDomain[];
  nodes: BudgetNode[];
  infeasible: boolean;
  missing_watts: number;
  mean_slowdown: number | null; // 1.012: jobs take 1.2 % longer.
  worst_slowdown: number | null;
  troubles: string[];
}

export interface BudgetJob {
  name: string;
  gpus: number;
  weight: number;
  limit_watts: number; // Each GPU has this limit.
  taken_watts: number; // All its GPUs together take this much.
  slowdown: number;
  marginal_per_watt: number;
  bound_missed: boolean;
  assumed: boolean; // Its power curve was not measured.
}

export interface BudgetTarget {
  id: string;
  domain: string | null; // null: all.
  start: string;
  end: string;
  watts: number | null; // null: the budget of the configuration again.
  reason: string;
}
