// Answers of the Colosseum's server: docs/colosseum.md, zeus/colosseum/api/colosseum_json.cc.
export type Choice = "a" | "b" | "tie";
export type SideName = "a" | "b";
export const sides: SideName[] = ["a", "b"];

export type StageName = "answering" | "voting" | "weighing" | "revealed" | "failed" | "expired";

export interface AnswerEnergy {
  energy_joules: number | null;
  sigma_joules?: number | null;
  prefill_joules?: number | null;
  decode_joules?: number | null;
  final: boolean;
}

export interface Comparison {
  verdict: "unknown" | "cannot_tell" | "a_more" | "b_more";
  difference_joules?: number | null;
  sigma_joules?: number | null;
  ratio?: number | null;
}

export interface Identity {
  model: string;
  prompt_tokens: number | null;
  output_tokens: number | null;
  duration_seconds: number | null;
  joules_per_output_token?: number;
  absent_reason?: string;
  text?: string;
}

export interface Duel {
  id: string;
  created_at: string;
  stage: StageName;
  expires_at?: string;
  votes: { response?: Choice; worth?: "yes" | "no"; change?: Choice };
  energy?: Record<SideName, AnswerEnergy>;
  power_watts?: Record<SideName, [number, number | null][]>;
  comparison?: Comparison;
  answers?: Record<SideName, Identity>;
  change_until?: string;
}

export interface Estimate {
  value: number | null;
  low: number | null;
  high: number | null;
  cases?: number;
  count?: number;
}

export interface Standing {
  model: string;
  games: number;
  wins: number;
  ties: number;
  win_rate: Estimate;
  rating: Estimate;
  response_joules: Estimate | null;
  token_joules: Estimate | null;
  turned: Estimate;
  frontier: boolean;
}

export interface Leaderboard {
  models: Standing[];
  duels: number;
  confidence: number;
}
