// The answers of /v1 that these pages show: docs/server.md, /openapi.json.

export interface JobSpec {
  id: string;
  batch_sizes: number[];
  default_batch_size: number;
  eta: number;
  target_metric: number;
  higher_is_better: boolean;
  max_epochs: number;
  policy: string;
  gpu_model: string;
  number_of_gpus: number;
  max_power_watts: number;
  labels: Record<string, string>;
}

export interface Job {
  spec: JobSpec;
  created_at: string;
  recurrences: number;
  trials: number;
  events: number;
  stage: string;
  best_batch_size: number;
}

export type Role = "exploring" | "concurrent" | "exploiting" | "baseline";

export interface Trial {
  number: number;
  recurrence: number;
  attempt: number;
  batch_size: number;
  role: Role;
  gpu_model: string;
  status: "dispatched" | "reporting" | "converged" | "stopped" | "failed" | "expired";
  started_at: string;
  ended_at: string | null;
  epochs: number;
  time_seconds: number;
  energy_joules: number;
  cost_joules: number;
  metric: number | null;
  power_limit_watts: number | null;
  reason: string;
  why: string;
}

export interface NextChoice {
  batch_size: number;
  role: Role;
  why: string;
  settled: boolean;
  outlook: string;
}

export interface UsualAmounts {
  count: number;
  energy_joules: number | null;
  energy_sigma_joules: number | null;
  time_seconds: number | null;
  time_sigma_seconds: number | null;
  cost_joules: number | null;
  cost_sigma_joules: number | null;
}

export interface Money {
  amount: number | null;
  amount_sigma: number | null;
  currency: string;
}

export interface Saved {
  energy_percent: number;
  energy_sigma_percent: number;
  energy_joules: number;
  energy_sigma_joules: number;
  energy_kwh: number;
  energy_sigma_kwh: number;
  time_percent: number;
  time_sigma_percent: number;
  time_seconds: number;
  time_sigma_seconds: number;
  cost_percent: number;
  cost_sigma_percent: number;
  carbon?: { grams_co2e: number | null; grams_co2e_sigma: number | null };
  cost?: Money;
}

export interface Savings {
  default_batch_size: number;
  baseline: UsualAmounts;
  zeus: UsualAmounts;
  runs: number;
  shared_runs: number;
  unmeasured_runs: number;
  saved: Saved | null;
  unknown_because: string | null;
}

export interface JobOverview {
  job: Job;
  next: NextChoice | null;
  savings: Savings;
  latest_trial: Trial | null;
  running: Trial[];
}

export interface Recurrence {
  recurrence: number;
  tries: number;
  batch_size: number;
  first_batch_size: number;
  gpu_model: string;
  role: Role;
  converged: boolean;
  under_way: boolean;
  failed: boolean;
  profiling: boolean;
  shared: boolean;
  unmeasured: boolean;
  started_at: string;
  ended_at: string | null;
  energy_joules: number;
  time_seconds: number;
  cost_joules: number;
}

export interface Arm {
  batch_size: number;
  state: "untried" | "candidate" | "dropped";
  runs: number;
  converged: number;
  epochs: number | null;
  epoch_cost_joules: number | null;
  epoch_cost_profiled: boolean;
  cost_joules: number | null;
  cost_sigma_joules: number | null;
}

export interface MeasuredArm {
  batch_size: number;
  runs: number;
  reached: number;
  energy_joules: number | null;
  energy_sigma_joules: number | null;
  time_seconds: number | null;
  time_sigma_seconds: number | null;
  cost_joules: number | null;
  cost_sigma_joules: number | null;
}

export interface Change {
  percent: number;
  sigma_percent: number | null;
}

// Asked for with eta.
export interface Arms {
  gpu_model: string;
  stage: string;
  best_batch_size: number;
  arms: Arm[];
  next: NextChoice | null;
  eta: number;
  own_best_batch_size: number;
  measured: MeasuredArm[];
  energy_change: Change | null;
  time_change: Change | null;
  notes: string[];
}

export interface SpanSavings {
  from: string;
  until: string;
  jobs: number;
  recurrences: number;
  charged_joules: number;
  energy_joules: number;
  energy_sigma_joules: number;
  time_seconds: number;
  time_sigma_seconds: number;
  unknown_jobs: string[];
}

export interface Caller {
  user: string | null;
  name_space: string;
  may_change: boolean;
}

export interface PlanSummary {
  id: string;
  created_at: string;
  version: number;
  pace_seconds: number | null;
  stages: number;
  microbatches: number;
  schedule: string;
  replicas: number;
  gpus: number;
  solved: {
    time_seconds: number;
    energy_joules: number;
    baseline_time_seconds: number;
    baseline_energy_joules: number;
  } | null;
}

export interface PlannedInstruction {
  instruction: string;
  microbatch: number;
  chunk: number;
  clock_mhz: number;
  start_seconds: number;
  time_seconds: number;
  energy_joules: number;
}

export interface Plan {
  deadline_seconds: number;
  time_seconds: number;
  energy_joules: number;
  waits_until_seconds: number;
  bound_joules: number;
  clock_changes: number;
  stages: PlannedInstruction[][];
}

export interface CurrentPlan {
  id: string;
  version: number;
  pace_seconds: number | null;
  baseline_time_seconds: number;
  baseline_energy_joules: number;
  plan: Plan;
}

export interface PlanFrontier {
  fastest_time_seconds: number;
  baseline_time_seconds: number;
  baseline_energy_joules: number;
  points: { time_seconds: number; energy_joules: number }[];
}
