// One pipeline: its frontier, and the plan that holds or one for another deadline, drawn.
import { useEffect, useMemo, useState } from "preact/hooks";
import { useFetched } from "../app/api";
import { Card, Failure, FigureNumber, Loaded, Nothing, Numbers } from "../app/parts";
import { changeWithSigma, energyText, timeText } from "../app/quantity";
import { go, linkTo } from "../app/router";
import type { ViewProps } from "../app/views";
import { FigureView } from "../components/figure";
import { Actions } from "./actions";
import { frontierFigure, planFigure, usefulPoints } from "./figures";
import "./jobs.css";
import type { CurrentPlan, Plan, PlanFrontier } from "./types";

const settled = 250;

function change(value: number, reference: number): string {
  return changeWithSigma(100 * (value / reference - 1));
}

function PlanNumbers({ plan, current }: { plan: Plan; current: CurrentPlan }) {
  return (
    <Numbers>
      <FigureNumber label="an iteration takes" text={timeText(plan.time_seconds)} note={`${change(plan.time_seconds, current.baseline_time_seconds)} against highest clocks`} />
      <FigureNumber label="energy" text={energyText(plan.energy_joules)} note={`${change(plan.energy_joules, current.baseline_energy_joules)} against highest clocks`} />
      <FigureNumber label="above the least possible" text={`${(100 * (plan.energy_joules / plan.bound_joules - 1)).toFixed(2)} %`} note="for this time, by a bound" />
      <FigureNumber label="clock changes" text={String(plan.clock_changes)} note="per iteration" />
    </Numbers>
  );
}

interface SlowdownProps {
  name: string;
  slowdown: number | null;
  frontier: PlanFrontier;
}

// The time that an iteration may take, as a multiple of that at the highest clocks.
function Slowdown({ name, slowdown, frontier }: SlowdownProps) {
  const last = usefulPoints(frontier).at(-1)?.time_seconds ?? frontier.baseline_time_seconds;
  const least = frontier.fastest_time_seconds / frontier.baseline_time_seconds;
  const most = Math.max(last / frontier.baseline_time_seconds, 1.01);
  const [chosen, setChosen] = useState(slowdown);
  useEffect(() => {
    if (chosen === slowdown) return;
    const timer = setTimeout(() => go(chosen === null ? linkTo("plans", name) : linkTo("plans", name, { slowdown: String(chosen) })), settled);
    return () => clearTimeout(timer);
  }, [chosen]);
  useEffect(() => setChosen(slowdown), [slowdown]);
  const low = Math.ceil(least * 100) / 100;
  return (
    <label class="eta">
      <span>
        {chosen === null ? "the plan that holds" : <>what if an iteration might take <b>{chosen.toFixed(2)}</b> times as long</>}
      </span>
      <input
        type="range"
        min={low}
        max={Math.ceil(most * 100) / 100}
        step="0.01"
        value={chosen ?? 1}
        aria-valuetext={`${(chosen ?? 1).toFixed(2)} times the time at highest clocks`}
        onInput={(event) => setChosen(Number(event.currentTarget.value))}
      />
      <span class="ends faint">
        <span>fastest</span>
        {chosen !== null && (
          <button type="button" onClick={() => setChosen(null)}>
            Back to the plan that holds
          </button>
        )}
        <span>least energy</span>
      </span>
    </label>
  );
}

function Frontier({ frontier, current }: { frontier: PlanFrontier; current: CurrentPlan }) {
  const figure = useMemo(() => frontierFigure(frontier, current), [frontier, current]);
  return <FigureView figure={figure} anchor="frontier" />;
}

function Drawn({ plan }: { plan: Plan }) {
  const figure = useMemo(() => planFigure(plan), [plan]);
  return <FigureView figure={figure} anchor="plan" />;
}

export function PlanPage({ parameters, query }: ViewProps) {
  const name = parameters.name ?? "";
  const base = `v1/plans/${encodeURIComponent(name)}`;
  const asked = Number(query.get("slowdown") ?? NaN);
  const slowdown = asked > 0 ? asked : null;
  // A straggler may change the plan while one looks.
  const current = useFetched<CurrentPlan>(base, 5);
  const frontier = useFetched<PlanFrontier>(`${base}/frontier`);
  const other = useFetched<Plan>(slowdown === null ? "" : `${base}/plan?slowdown=${slowdown}`);
  if (current.error?.status === 404)
    return (
      <Nothing>
        There is no pipeline {name} any more: go to <a href={linkTo("plans")}>all pipelines</a>.
      </Nothing>
    );
  return (
    <>
      <header class="page-title">
        <div>
          <p class="crumb">
            <a href={linkTo("plans")}>Pipelines</a>
          </p>
          <h1>{name}</h1>
        </div>
        <Actions
          kind="pipeline"
          name={name}
          path={base}
          loss="Its profile and its plan are gone for good; ranks that ask for it are told that there is none."
          list={linkTo("plans")}
          file={{ name: `${name}.json`, type: "application/json", path: base }}
        />
      </header>
      <Loaded of={current}>
        {(now) => {
          const plan = slowdown === null ? now.plan : other.value;
          return (
            <>
              <Card title={slowdown === null ? `Plan, version ${now.version}` : "Another plan; the one that holds stays"}>
                {now.pace_seconds !== null && slowdown === null && (
                  <p class="why">A straggler makes iterations take {timeText(now.pace_seconds)}, so the others run slower.</p>
                )}
                {plan ? <PlanNumbers plan={plan} current={now} /> : other.error ? <Failure error={other.error} /> : <Nothing>Planning …</Nothing>}
                {frontier.value && <Slowdown name={name} slowdown={slowdown} frontier={frontier.value} />}
              </Card>
              {plan && <Drawn plan={plan} />}
              <Loaded of={frontier}>{(points) => <Frontier frontier={points} current={now} />}</Loaded>
            </>
          );
        }}
      </Loaded>
    </>
  );
}
