// The savings of all jobs, this week and in the weeks before.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { useFetched } from "../app/api";
import { Card, FigureNumber, Loaded, Numbers } from "../app/parts";
import { timeText, withSigma } from "../app/quantity";
import { linkTo } from "../app/router";
import { FigureView } from "../components/figure";
import { weeksFigure } from "./figures";
import type { SpanSavings } from "./types";
import { boundsPath, weekBounds } from "./weeks";

const weeks = 12;
const joulesPerKilowattHour = 3.6e6;

function kilowattHours(span: SpanSavings): string {
  const [value, sigma] = [span.energy_joules / joulesPerKilowattHour, span.energy_sigma_joules / joulesPerKilowattHour];
  return Math.abs(value) < 1 ? withSigma(1e3 * value, 1e3 * sigma, "Wh") : withSigma(value, sigma, "kWh");
}

function UnknownJobs({ span }: { span: SpanSavings }) {
  const names = span.unknown_jobs;
  if (names.length === 0) return null;
  const one = names.length === 1;
  return (
    <p class="faint">
      Not counted, because there is nothing to compare {one ? "it" : "them"} with yet:{" "}
      {names.slice(0, 5).map((name, i) => (
        <>
          {i > 0 && ", "}
          <a href={linkTo("jobs", name)}>{name}</a>
        </>
      ))}
      {names.length > 5 && ` and ${names.length - 5} more`}. {one ? "Its page says" : "Their pages say"} what is missing.
    </p>
  );
}

function Week({ span, label }: { span: SpanSavings; label: string }) {
  if (span.jobs === 0) return <FigureNumber label={label} text="–" note="no job with known savings ended a training" />;
  const trainings = `${span.recurrences} training${span.recurrences === 1 ? "" : "s"} of ${span.jobs} job${span.jobs === 1 ? "" : "s"}`;
  const time = `${timeText(span.time_seconds, span.time_sigma_seconds)} of time`;
  // Below zero: more was taken than by as many trainings with the default.
  const note = span.energy_joules < 0 ? `${trainings}; trying batch sizes has cost more than it saved so far` : `${trainings}; ${time}`;
  return <FigureNumber label={label} text={kilowattHours(span)} note={note} />;
}

// `ended` are the runs of all jobs that have ended: with them the sums change.
export function SavingsCard({ ended }: { ended: number }) {
  const day = new Date().toDateString();
  const path = useMemo(() => boundsPath(weekBounds(weeks, new Date())), [day]);
  const saved = useFetched<{ spans: SpanSavings[] }>(path, 60);
  const first = useRef(ended);
  useEffect(() => {
    if (ended !== first.current) saved.reload();
  }, [ended]);
  return (
    <Card title="Saved by Zeus">
      <Loaded of={saved}>
        {({ spans }) => {
          const [before, now] = spans.slice(-2) as [SpanSavings, SpanSavings];
          return (
            <>
              <Numbers>
                <Week span={now} label="this week" />
                <Week span={before} label="last week" />
              </Numbers>
              <UnknownJobs span={now} />
              {spans.some((span) => span.jobs > 0) && (
                <details class="more">
                  <summary>By week</summary>
                  <FigureView figure={weeksFigure(spans)} anchor="savings-by-week" />
                </details>
              )}
            </>
          );
        }}
      </Loaded>
    </Card>
  );
}
