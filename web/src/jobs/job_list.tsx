// All jobs: savings, whether each still learns, and runs under way.
import { useMemo, useState } from "preact/hooks";
import type { ViewProps } from "../app/views";
import { Ago, Card, Failure, Nothing, StatusLine } from "../app/parts";
import { numberText } from "../app/quantity";
import { linkTo } from "../app/router";
import { useNow } from "../app/time";
import { endedTrials, useLiveJobs } from "./data";
import { matches, sortedJobs } from "./job_order";
import type { Column, Order } from "./job_order";
import "./jobs.css";
import { SavingsCard } from "./savings_card";
import { StreamLine } from "./stream_line";
import type { JobOverview, Trial } from "./types";
import { lastRunAt, learningText, savedText } from "./words";

const columns: { key: Column; title: string; number?: boolean; wide?: boolean }[] = [
  { key: "job", title: "job" },
  { key: "learning", title: "learning" },
  { key: "saved", title: "energy against the default", number: true },
  { key: "batch", title: "batch size now", number: true, wide: true },
  { key: "runs", title: "recurrences", number: true, wide: true },
  { key: "last", title: "last run", wide: true },
];

function Running({ trial, epochs }: { trial: Trial; epochs: number }) {
  return (
    <span class="running">
      <progress max={epochs} value={trial.epochs} aria-label={`epochs of trial ${trial.number}`} />
      batch size {trial.batch_size}, epoch {trial.epochs}
      {trial.metric !== null && `, metric ${numberText(trial.metric, "")}`}
    </span>
  );
}

function Row({ overview, now }: { overview: JobOverview; now: Date }) {
  const { job, next, running } = overview;
  const last = lastRunAt(overview);
  const known = overview.savings.saved !== null;
  return (
    <tr>
      <th scope="row">
        <a href={linkTo("jobs", job.spec.id)}>{job.spec.id}</a>
        {running.slice(0, 3).map((trial) => (
          <Running trial={trial} epochs={job.spec.max_epochs} />
        ))}
        {running.length > 3 && <span class="running">and {running.length - 3} more</span>}
      </th>
      <td class="unbroken" title={next?.outlook}>
        <StatusLine tone={next?.settled ? "good" : "busy"}>
          {learningText(next)}
          {!next?.settled && <span class="faint"> ({job.stage})</span>}
        </StatusLine>
      </td>
      <td class={`number ${known ? "" : "faint"}`} title={overview.savings.unknown_because ?? ""}>
        {savedText(overview.savings)}
      </td>
      <td class="number job-detail">{next?.batch_size ?? "–"}</td>
      <td class="number job-detail">{job.recurrences}</td>
      <td class="unbroken job-detail">{last ? <Ago at={last} now={now} /> : "never"}</td>
    </tr>
  );
}

const shownAtFirst = 200;

function JobTable({ jobs }: { jobs: JobOverview[] }) {
  const now = useNow(10);
  const [search, setSearch] = useState("");
  const [order, setOrder] = useState<Order>({ column: "job", down: false });
  const [limit, setLimit] = useState(shownAtFirst);
  const rows = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    return sortedJobs(wanted ? jobs.filter((one) => matches(one, wanted)) : jobs, order);
  }, [jobs, search, order]);
  const sort = (column: Column) =>
    setOrder((before) => ({ column, down: before.column === column && !before.down }));
  return (
    <div class="table">
      <header>
        <h2>Jobs</h2>
        <div class="tools">
          <input
            type="search"
            placeholder="Find jobs"
            aria-label="Find jobs by name, label, GPU model or state"
            value={search}
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
        </div>
      </header>
      <div class="wide" tabIndex={0} role="region" aria-label="Jobs">
        <table class="jobs">
          <thead>
            <tr>
              {columns.map(({ key, title, number, wide }) => (
                <th
                  scope="col"
                  class={`${number ? "number" : ""} ${wide ? "job-detail" : ""}`}
                  aria-sort={order.column === key ? (order.down ? "descending" : "ascending") : "none"}
                >
                  <button type="button" onClick={() => sort(key)}>
                    {title}
                    <i aria-hidden="true">{order.column === key ? (order.down ? "▼" : "▲") : ""}</i>
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, limit).map((overview) => (
              <Row key={overview.job.spec.id} overview={overview} now={now} />
            ))}
          </tbody>
        </table>
        {rows.length === 0 && <Nothing>No job fits.</Nothing>}
      </div>
      {rows.length > limit && (
        <p class="caption">
          {limit} of {rows.length} jobs.{" "}
          <button type="button" onClick={() => setLimit(rows.length)}>
            Show all
          </button>
        </p>
      )}
    </div>
  );
}

function FirstJob() {
  return (
    <Card title="No jobs yet">
      <p>
        A job is a training that recurs. This starts the first one, on this server:
      </p>
      <pre>
        zeus train --server {location.origin} --job mnist --batch-sizes 32,64,128 --default 64 …
      </pre>
    </Card>
  );
}

export function JobList(_: ViewProps) {
  const { jobs, error, stream, reload } = useLiveJobs();
  if (!jobs) return error ? <Failure error={error} retry={reload} /> : <Nothing>Loading …</Nothing>;
  return (
    <>
      <header class="page-title">
        <h1>Recurring jobs</h1>
        <StreamLine stream={stream} />
      </header>
      {error && <StatusLine tone="warn">This is not up to date: {error.message}.</StatusLine>}
      {jobs.length === 0 ? (
        <FirstJob />
      ) : (
        <>
          <SavingsCard ended={jobs.reduce((sum, job) => sum + endedTrials(job), 0)} />
          <JobTable jobs={jobs} />
        </>
      )}
    </>
  );
}
