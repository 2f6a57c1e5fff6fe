// The table of all views. A view is one line here and one component: it is shown where the server
// has its feature (/app.json).
import type { ComponentType } from "preact";
import { BudgetPage } from "../budget/budget_page";
import { DuelPage } from "../colosseum/duel_page";
import { LeaderboardPage } from "../colosseum/leaderboard_page";
import { JobList } from "../jobs/job_list";
import { JobPage } from "../jobs/job_page";
import { PlanList } from "../jobs/plan_list";
import { PlanPage } from "../jobs/plan_page";
import { FleetPage } from "../live/fleet_page";
import { NodePage } from "../live/node_page";

export interface ViewProps {
  parameters: Record<string, string>; // Of the path: "/jobs/:name".
  query: URLSearchParams; // Of the address, for what a reader has chosen and may want to share.
}

export interface View {
  path: string;
  title: string;
  component: ComponentType<ViewProps>;
  feature: string;
  listed?: boolean; // Whether the navigation has it; without parameters in the path it does.
}

export const views: View[] = [
  { path: "/fleet", title: "Fleet", component: FleetPage, feature: "fleet" },
  { path: "/node", title: "Node", component: NodePage, feature: "node" },
  { path: "/node/:device", title: "Device", component: NodePage, feature: "node" },
  { path: "/jobs", title: "Jobs", component: JobList, feature: "jobs" },
  { path: "/jobs/:name", title: "Job", component: JobPage, feature: "jobs" },
  { path: "/plans", title: "Pipelines", component: PlanList, feature: "plans" },
  { path: "/plans/:name", title: "Pipeline", component: PlanPage, feature: "plans" },
  { path: "/budget", title: "Budget", component: BudgetPage, feature: "budget" },
  { path: "/duel", title: "Duel", component: DuelPage, feature: "colosseum" },
  { path: "/leaderboard", title: "Leaderboard", component: LeaderboardPage, feature: "colosseum" },
];

export function isListed(view: View): boolean {
  return view.listed ?? !view.path.includes(":");
}
