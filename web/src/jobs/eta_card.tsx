// The choice of another eta: the recorded runs are weighed anew.
import { useEffect, useRef, useState } from "preact/hooks";
import { useFetched } from "../app/api";
import { Card, Loaded } from "../app/parts";
import { energyText, timeText } from "../app/quantity";
import { go, linkTo } from "../app/router";
import type { Arm, Arms, MeasuredArm } from "./types";
import { etaText } from "./words";

const settled = 250; // Milliseconds without a move of the slider.

function ArmRow({ arm, measured, arms, byDefault }: { arm: Arm; measured: MeasuredArm | undefined; arms: Arms; byDefault: number }) {
  const marks = [
    arm.batch_size === arms.best_batch_size ? "chosen" : "",
    arm.batch_size === byDefault ? "default" : "",
    arm.state === "candidate" ? "" : arm.state,
  ].filter(Boolean);
  return (
    <tr class={arm.batch_size === arms.best_batch_size ? "best-arm" : ""}>
      <th scope="row" class="number">{arm.batch_size}</th>
      <td class="number">{arm.runs}</td>
      <td class="number">{arm.converged}</td>
      <td class="number">{arm.epochs?.toFixed(1) ?? "–"}</td>
      <td class="number">
        {energyText(arm.epoch_cost_joules)}
        {arm.epoch_cost_joules !== null && !arm.epoch_cost_profiled && " (estimated)"}
      </td>
      <td class="number">{energyText(arm.cost_joules, arm.cost_sigma_joules)}</td>
      <td class="number">{energyText(measured?.energy_joules, measured?.energy_sigma_joules)}</td>
      <td class="number">{timeText(measured?.time_seconds, measured?.time_sigma_seconds)}</td>
      <td>{marks.join(", ")}</td>
    </tr>
  );
}

const titles = [
  ["batch size", ""],
  ["runs", "Results that count"],
  ["reached", "Runs that reached the target"],
  ["epochs", "Expected to the target"],
  ["epoch cost", "What an epoch costs at its best power limit"],
  ["cost to target", "What the policy expects of a run; ± is one standard deviation of that belief"],
  ["energy", "Measured, per training that reached the target, failed runs included"],
  ["time", "Measured, per training that reached the target, failed runs included"],
];

function ArmsTable({ arms, byDefault }: { arms: Arms; byDefault: number }) {
  return (
    <div class="wide" tabIndex={0} role="region" aria-label="Beliefs by batch size">
      <table>
        <thead>
          <tr>
            {titles.map(([title, meaning]) => (
              <th scope="col" class="number" {...(meaning ? { title: meaning } : {})}>{title}</th>
            ))}
            <td />
          </tr>
        </thead>
        <tbody>
          {arms.arms.map((arm, i) => (
            <ArmRow arm={arm} measured={arms.measured[i]} arms={arms} byDefault={byDefault} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

export interface EtaCardProps {
  job: string;
  own: number; // The eta of the job.
  chosen: number | null; // That of the address.
  byDefault: number;
  ended: number; // Runs that have ended: beliefs change with them.
}

export function EtaCard({ job, own, chosen, byDefault, ended }: EtaCardProps) {
  const [eta, setEta] = useState(chosen ?? own);
  useEffect(() => setEta(chosen ?? own), [chosen, own]);
  const shown = chosen ?? own;
  const arms = useFetched<Arms>(`v1/jobs/${encodeURIComponent(job)}/arms?eta=${shown}`);
  const first = useRef(ended);
  useEffect(() => {
    if (ended !== first.current) arms.reload();
  }, [ended]);
  // The address follows when the slider has come to rest, so that the view can be shared.
  useEffect(() => {
    if (eta === shown) return;
    const timer = setTimeout(() => go(eta === own ? linkTo("jobs", job) : linkTo("jobs", job, { eta: String(eta) })), settled);
    return () => clearTimeout(timer);
  }, [eta]);
  return (
    <Card title="Beliefs by batch size">
      <label class="eta">
        <span>
          what if eta were <b>{eta}</b>
          {eta === own && " (as it is)"}
        </span>
        <input
          type="range"
          min="0"
          max="1"
          step="0.05"
          value={eta}
          aria-valuetext={`eta ${eta}`}
          onInput={(event) => setEta(Number(event.currentTarget.value))}
        />
        <span class="ends faint">
          <span>0: only time counts</span>
          <span>1: only energy counts</span>
        </span>
      </label>
      <Loaded of={arms}>
        {(value) => (
          <>
            {value.eta !== own && (
              <p class="finding" role="status">
                {etaText(value)}
              </p>
            )}
            <ArmsTable arms={value} byDefault={byDefault} />
            {value.notes.length > 0 && (
              <ul class="notes">
                {value.notes.map((note) => (
                  <li>{note}</li>
                ))}
              </ul>
            )}
          </>
        )}
      </Loaded>
    </Card>
  );
}
