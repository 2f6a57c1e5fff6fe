// One job: its next run and why, runs under way, beliefs, and savings.
import { useMemo } from "preact/hooks";
import type { ViewProps } from "../app/views";
import { Ago, Card, Failure, FigureNumber, Nothing, Numbers, StatusLine } from "../app/parts";
import { changeWithSigma, energyText, numberText, timeText, withSigma } from "../app/quantity";
import { linkTo } from "../app/router";
import { useNow } from "../app/time";
import { FigureView } from "../components/figure";
import { Actions } from "./actions";
import { endedTrials, useLiveJob } from "./data";
import { EtaCard } from "./eta_card";
import { recurrencesFigure } from "./figures";
import "./jobs.css";
import { StreamLine } from "./stream_line";
import type { JobOverview, Savings, Trial } from "./types";
import { differenceText, endText, learningText, roleTexts } from "./words";

function JobActions({ overview }: { overview: JobOverview }) {
  const { spec, trials } = overview.job;
  const path = `v1/jobs/${encodeURIComponent(spec.id)}`;
  const count = overview.running.length;
  const running = count === 1 ? "A run is" : `${count} runs are`;
  const loss = `Its ${trials} runs, its events and everything that was learned are gone for good; export it first if you may need them.`;
  return (
    <Actions
      kind="job"
      name={spec.id}
      path={path}
      loss={count > 0 ? `${loss} ${running} under way: what they report will be refused.` : loss}
      list={linkTo("jobs")}
      file={{ name: `${spec.id}.jsonl`, type: "application/x-ndjson", path: `${path}/export` }}
    />
  );
}

function NextCard({ overview }: { overview: JobOverview }) {
  const { next, job } = overview;
  if (!next) return null;
  return (
    <Card title="Next recurrence" aside={<StatusLine tone={next.settled ? "good" : "busy"}>{learningText(next)}</StatusLine>}>
      <Numbers>
        <FigureNumber label="batch size" text={String(next.batch_size)} note={roleTexts[next.role]} />
        <FigureNumber label="best known" text={String(job.best_batch_size)} note={`default ${job.spec.default_batch_size}`} />
        <FigureNumber label="recurrences" text={String(job.recurrences)} note={`${job.trials} runs`} />
      </Numbers>
      <p class="why">{next.why}</p>
      <p class="outlook">{next.outlook}</p>
    </Card>
  );
}

function moneyText(savings: Savings): string {
  const { carbon, cost } = savings.saved ?? {};
  const parts: string[] = [];
  if (carbon?.grams_co2e != null) parts.push(`${withSigma(carbon.grams_co2e, carbon.grams_co2e_sigma, "g")} CO2e`);
  if (cost?.amount != null) parts.push(`${withSigma(cost.amount, cost.amount_sigma, "")} ${cost.currency}`);
  return parts.join(", ");
}

function SavedCard({ savings }: { savings: Savings }) {
  const { saved, baseline, zeus } = savings;
  const left = [
    savings.shared_runs > 0 ? `${savings.shared_runs} runs that shared their GPUs` : "",
    savings.unmeasured_runs > 0 ? `${savings.unmeasured_runs} runs whose energy is not known well enough` : "",
  ].filter(Boolean);
  return (
    <Card title="Against the default">
      {saved ? (
        <>
          <Numbers>
            <FigureNumber label="energy" text={changeWithSigma(-saved.energy_percent, saved.energy_sigma_percent)} note={`${differenceText(saved.energy_joules, saved.energy_sigma_joules, energyText)} in all`} />
            <FigureNumber label="time" text={changeWithSigma(-saved.time_percent, saved.time_sigma_percent)} note={`${differenceText(saved.time_seconds, saved.time_sigma_seconds, timeText)} in all`} />
            <FigureNumber label="cost" text={changeWithSigma(-saved.cost_percent, saved.cost_sigma_percent)} />
          </Numbers>
          {moneyText(savings) && <p>That is {moneyText(savings)} less.</p>}
          <p class="faint">
            {zeus.count} trainings with Zeus took {energyText(zeus.energy_joules, zeus.energy_sigma_joules)} each, with
            exploration, profiling and failed runs charged; {baseline.count} undisturbed runs of the default (batch size{" "}
            {savings.default_batch_size}) took {energyText(baseline.energy_joules, baseline.energy_sigma_joules)}.
          </p>
        </>
      ) : (
        <p class="why">Not known yet: {savings.unknown_because}.</p>
      )}
      {left.length > 0 && <p class="faint">Left out: {left.join(", ")}.</p>}
    </Card>
  );
}

function RunningTrial({ trial, overview, now }: { trial: Trial; overview: JobOverview; now: Date }) {
  const { max_epochs, target_metric } = overview.job.spec;
  return (
    <li>
      <p>
        <b>Trial {trial.number}</b>: batch size {trial.batch_size} on {trial.gpu_model || "an unknown GPU"},{" "}
        {roleTexts[trial.role]}, began <Ago at={trial.started_at} now={now} />
      </p>
      <p class="progress">
        <progress max={max_epochs} value={trial.epochs} aria-label={`epochs of trial ${trial.number}`} />
        <span>
          epoch {trial.epochs} of at most {max_epochs}
        </span>
        <span>
          metric {numberText(trial.metric, "")} of {target_metric}
        </span>
        <span>
          {energyText(trial.energy_joules)}, {timeText(trial.time_seconds)}
        </span>
        {trial.power_limit_watts !== null && <span>limit {trial.power_limit_watts} W</span>}
      </p>
      {trial.why && <p class="faint">{trial.why}</p>}
    </li>
  );
}

function RunningCard({ overview }: { overview: JobOverview }) {
  const now = useNow(5);
  const { running, latest_trial: last } = overview;
  return (
    <Card title={running.length > 0 ? "Running now" : "Nothing runs now"}>
      {running.length > 0 ? (
        <ul class="trials">
          {running.map((trial) => (
            <RunningTrial key={trial.number} trial={trial} overview={overview} now={now} />
          ))}
        </ul>
      ) : last ? (
        <>
          <p>
            The last run, trial {last.number} with batch size {last.batch_size}, {endText(last)}{" "}
            <Ago at={last.ended_at ?? last.started_at} now={now} />
            {last.reason && `: ${last.reason}`}.
          </p>
          {last.why && <p class="faint">{last.why}</p>}
        </>
      ) : (
        <Nothing>This job has never run.</Nothing>
      )}
    </Card>
  );
}

function Facts({ overview }: { overview: JobOverview }) {
  const { spec, stage, created_at } = overview.job;
  const labels = Object.entries(spec.labels).map(([name, value]) => `${name}: ${value}`);
  const facts: [string, string][] = [
    ["policy", `${spec.policy}, ${stage}`],
    ["eta", String(spec.eta)],
    [
      "target",
      spec.labels.goal === "epochs"
        ? `none: ${spec.max_epochs} epochs a run`
        : `${spec.target_metric}, ${spec.higher_is_better ? "higher" : "lower"} is better`,
    ],
    ["GPUs", `${spec.number_of_gpus} × ${spec.gpu_model}, at most ${spec.max_power_watts} W`],
    ["labels", labels.join(", ")],
  ];
  return (
    <p class="faint job-facts">
      {facts
        .filter(([, value]) => value !== "")
        .map(([name, value]) => (
          <span>
            {name} <b>{value}</b>
          </span>
        ))}
      <span>
        registered <b><Ago at={created_at} /></b>
      </span>
    </p>
  );
}

function etaOf(query: URLSearchParams): number | null {
  const eta = Number(query.get("eta") ?? NaN);
  return eta >= 0 && eta <= 1 ? eta : null;
}

export function JobPage({ parameters, query }: ViewProps) {
  const name = parameters.name ?? "";
  const { overview, recurrences, error, gone, stream, reload } = useLiveJob(name);
  const batchSizes = overview?.job.spec.batch_sizes;
  const figure = useMemo(
    () => recurrences && batchSizes && recurrencesFigure(recurrences, batchSizes),
    [recurrences, batchSizes?.join()],
  );
  if (gone)
    return (
      <Nothing>
        There is no job {name} any more: go to <a href={linkTo("jobs")}>all jobs</a>.
      </Nothing>
    );
  if (!overview || !figure) return error ? <Failure error={error} retry={reload} /> : <Nothing>Loading …</Nothing>;
  const { spec } = overview.job;
  return (
    <>
      <header class="page-title">
        <div>
          <p class="crumb">
            <a href={linkTo("jobs")}>Jobs</a>
          </p>
          <h1>{spec.id}</h1>
        </div>
        <StreamLine stream={stream} />
        <JobActions overview={overview} />
      </header>
      {error && <StatusLine tone="warn">This is not up to date: {error.message}.</StatusLine>}
      <Facts overview={overview} />
      <div class="cards wide-cards">
        <NextCard overview={overview} />
        <SavedCard savings={overview.savings} />
        <RunningCard overview={overview} />
      </div>
      {overview.job.recurrences > 0 && <FigureView figure={figure} anchor="recurrences" />}
      <EtaCard job={spec.id} own={spec.eta} chosen={etaOf(query)} byDefault={spec.default_batch_size} ended={endedTrials(overview)} />
    </>
  );
}
