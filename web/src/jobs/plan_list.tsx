// All pipelines that the server plans for.
import { useCallback, useEffect, useState } from "preact/hooks";
import { ApiError } from "../app/api";
import { Ago, Card, Failure, Nothing } from "../app/parts";
import { changeWithSigma, energyText, timeText } from "../app/quantity";
import { linkTo } from "../app/router";
import type { ViewProps } from "../app/views";
import { allPlans } from "./data";
import "./jobs.css";
import type { PlanSummary } from "./types";

const period = 5000;

function usePlans() {
  const [plans, setPlans] = useState<PlanSummary[]>();
  const [error, setError] = useState<ApiError>();
  const renew = useCallback(async () => {
    try {
      setPlans(await allPlans<PlanSummary>());
      setError(undefined);
    } catch (failure) {
      setError(failure instanceof ApiError ? failure : new ApiError(0, String(failure)));
    }
  }, []);
  useEffect(() => {
    void renew();
    const timer = setInterval(() => !document.hidden && void renew(), period);
    return () => clearInterval(timer);
  }, []);
  return { plans, error, renew };
}

function Row({ plan }: { plan: PlanSummary }) {
  const { solved } = plan;
  const saved = solved && 100 * (solved.energy_joules / solved.baseline_energy_joules - 1);
  return (
    <tr>
      <th scope="row">
        <a href={linkTo("plans", plan.id)}>{plan.id}</a>
      </th>
      <td class="number">{plan.stages}</td>
      <td class="number">{plan.microbatches}</td>
      <td>{plan.schedule}</td>
      <td class="number">{plan.gpus}</td>
      <td class="number">{plan.version}</td>
      <td class="unbroken">{plan.pace_seconds === null ? "none" : timeText(plan.pace_seconds)}</td>
      <td class="number">{solved ? timeText(solved.time_seconds) : "–"}</td>
      <td class="number">{solved ? energyText(solved.energy_joules) : "–"}</td>
      <td class="number">{changeWithSigma(saved)}</td>
      <td class="unbroken">
        <Ago at={plan.created_at} />
      </td>
    </tr>
  );
}

const titles: [string, boolean][] = [
  ["pipeline", false],
  ["stages", true],
  ["microbatches", true],
  ["schedule", false],
  ["GPUs", true],
  ["version", true],
  ["straggler", false],
  ["iteration", true],
  ["energy", true],
  ["against highest clocks", true],
  ["submitted", false],
];

export function PlanList(_: ViewProps) {
  const { plans, error, renew } = usePlans();
  if (!plans) return error ? <Failure error={error} retry={() => void renew()} /> : <Nothing>Loading …</Nothing>;
  return (
    <>
      <header class="page-title">
        <h1>Pipelines</h1>
      </header>
      {error && <p role="alert">This is not up to date: {error.message}.</p>}
      {plans.length === 0 ? (
        <Card title="No pipelines yet">
          <p>A pipeline of a large model gets a clock for every computation when its profile is submitted:</p>
          <pre>curl {location.origin}/v1/plans -d @spec.json</pre>
        </Card>
      ) : (
        <div class="table">
          <div class="wide" tabIndex={0} role="region" aria-label="Pipelines">
            <table>
              <thead>
                <tr>
                  {titles.map(([title, number]) => (
                    <th scope="col" class={number ? "number" : ""}>
                      {title}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {plans.map((plan) => (
                  <Row key={plan.id} plan={plan} />
                ))}
              </tbody>
            </table>
          </div>
          {plans.some((plan) => !plan.solved) && (
            <p class="caption">A dash: the plan is not in the server's memory now; its page makes it.</p>
          )}
        </div>
      )}
    </>
  );
}
