// The power budget: its domains as a tree, what is committed, drawn and free in them, what a watt is
// worth, and which jobs pay.
import { useState } from "preact/hooks";
import { useFetched } from "../app/api";
import { Card, FigureNumber, Loaded, Nothing, Numbers, StatusLine, Trouble } from "../app/parts";
import { powerText } from "../app/quantity";
import { momentText, useNow } from "../app/time";
import type { ViewProps } from "../app/views";
import { barOf, byPayment, notesOf, paidText, priceText, slowdownText, stateOf, toCome, treeOf } from "./budget";
import type { TreeRow } from "./budget";
import "./budget.css";
import type { Budget, BudgetJob, BudgetNode, BudgetTarget } from "./types";

const every = 5; // Seconds between two questions.
const rowsAtFirst = 100;

function Bar({ row }: { row: TreeRow }) {
  const { drawn, committed, limit } = barOf(row.domain);
  const percent = (share: number) => `${(100 * share).toFixed(2)}%`;
  return (
    <div class="budget-bar" aria-hidden="true">
      <i class="budget-committed" style={{ width: percent(committed) }} />
      <i class="budget-drawn" style={{ width: percent(drawn) }} />
      <i class="budget-limit" style={{ left: percent(limit) }} />
    </div>
  );
}

function DomainRow({ row }: { row: TreeRow }) {
  const { domain, depth } = row;
  return (
    <tr>
      <th scope="row" style={{ paddingLeft: `${6 + 18 * depth}px` }}>
        {domain.name}
        {domain.parent && <span class="spoken"> in {domain.parent}</span>}
      </th>
      <td class="number">{powerText(domain.watts)}</td>
      <td class="number">{powerText(domain.committed_watts)}</td>
      <td class="number">{powerText(domain.drawn_watts)}</td>
      <td class="number">{powerText(domain.free_watts)}</td>
      <td class="number">{priceText(domain.price_per_watt)}</td>
      <td class="budget-bar-cell">
        <Bar row={row} />
      </td>
    </tr>
  );
}

function Domains({ budget }: { budget: Budget }) {
  return (
    <Card title="Domains" label="Domains">
      <div class="budget-scroll">
        <table class="budget-table">
          <thead>
            <tr>
              <th>domain</th>
              <th class="number">budget</th>
              <th class="number">committed</th>
              <th class="number">drawn</th>
              <th class="number">free</th>
              <th class="number">a watt more saves</th>
              <th>
                <span class="budget-key">drawn</span> <span class="budget-key budget-committed">committed</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {treeOf(budget.domains).map((row) => (
              <DomainRow key={row.domain.name} row={row} />
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

function JobRow({ job }: { job: BudgetJob }) {
  return (
    <tr>
      <th scope="row">{job.name}</th>
      <td class="number">{job.gpus}</td>
      <td class="number">{powerText(job.limit_watts)}</td>
      <td class="number">{powerText(job.taken_watts)}</td>
      <td class="number">{slowdownText(job.slowdown)}</td>
      <td class="number">{paidText(job)}</td>
      <td class="number">{priceText(job.marginal_per_watt)}</td>
      <td>{notesOf(job)}</td>
    </tr>
  );
}

function Jobs({ jobs }: { jobs: BudgetJob[] }) {
  const [all, setAll] = useState(false);
  const sorted = byPayment(jobs);
  const shown = all ? sorted : sorted.slice(0, rowsAtFirst);
  if (jobs.length === 0) return <Nothing>No job runs, so nobody pays.</Nothing>;
  return (
    <>
      <div class="budget-scroll">
        <table class="budget-table">
          <thead>
            <tr>
              <th>job</th>
              <th class="number">GPUs</th>
              <th class="number">limit of each</th>
              <th class="number">takes</th>
              <th class="number">slowdown</th>
              <th class="number">pays</th>
              <th class="number">a watt more saves</th>
              <th>note</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((job) => (
              <JobRow key={job.name} job={job} />
            ))}
          </tbody>
        </table>
      </div>
      {shown.length < sorted.length && (
        <button type="button" onClick={() => setAll(true)}>
          Show {sorted.length - shown.length} more
        </button>
      )}
    </>
  );
}

function Schedule({ targets }: { targets: BudgetTarget[] }) {
  const now = useNow(30);
  const coming = toCome(targets, now);
  if (coming.length === 0) return <Nothing>No target is set: the budget stays as it is.</Nothing>;
  return (
    <ul class="budget-list">
      {coming.map((target) => (
        <li key={target.id}>
          <b>{target.watts === null ? "the usual budget" : powerText(target.watts)}</b>
          {target.domain ? ` for ${target.domain}` : ""} from {momentText(target.start, now)} to {momentText(target.end, now)}
          {target.reason ? `: ${target.reason}` : ""}
        </li>
      ))}
    </ul>
  );
}

function Silent({ nodes }: { nodes: BudgetNode[] }) {
  const silent = nodes.filter((node) => node.silent);
  if (silent.length === 0) return null;
  return (
    <Card title="Nodes that do not report" label="Nodes that do not report">
      <ul class="budget-list">
        {silent.map((node) => (
          <li key={node.name}>
            <b>{node.name}</b> in {node.domain}: {powerText(node.committed_watts)} stay reserved
            {node.guarded ? "" : ", because nothing lowers its caps while its daemon is away"}
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Head({ budget }: { budget: Budget }) {
  const state = stateOf(budget);
  const root = budget.domains[0];
  return (
    <>
      <header class="budget-title">
        <div>
          <h1>Power budget</h1>
          <StatusLine tone={state.tone} spoken>
            {state.text}
          </StatusLine>
        </div>
        <Numbers>
          <FigureNumber label="Budget" text={powerText(root?.watts)} />
          <FigureNumber label="Committed" text={powerText(root?.committed_watts)} />
          <FigureNumber label="Drawn" text={powerText(root?.drawn_watts)} />
          <FigureNumber label="Free" text={powerText(root?.free_watts)} />
          <FigureNumber label="Mean slowdown" text={slowdownText(budget.mean_slowdown)} note={`worst ${slowdownText(budget.worst_slowdown)}`} />
        </Numbers>
      </header>
      {budget.troubles.length > 0 && (
        <Trouble title="Not everything fits">
          {budget.troubles.map((trouble) => (
            <p key={trouble}>{trouble}</p>
          ))}
        </Trouble>
      )}
    </>
  );
}

export function BudgetPage(_: ViewProps) {
  const budget = useFetched<Budget>("v1/budget", every);
  const jobs = useFetched<{ jobs: BudgetJob[] }>("v1/budget/jobs", every);
  const schedule = useFetched<{ targets: BudgetTarget[] }>("v1/budget/schedule", 6 * every);
  return (
    <Loaded of={budget}>
      {(value) => (
        <>
          <Head budget={value} />
          <Domains budget={value} />
          <Card title="Who pays" label="Who pays">
            <Loaded of={jobs}>{(answer) => <Jobs jobs={answer.jobs} />}</Loaded>
          </Card>
          <Card title="Targets" label="Targets">
            <Loaded of={schedule}>{(answer) => <Schedule targets={answer.targets} />}</Loaded>
          </Card>
          <Silent nodes={value.nodes} />
        </>
      )}
    </Loaded>
  );
}
