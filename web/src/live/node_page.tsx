// A node as it is now: power, energy, limits and who holds them, faults with what helps.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Ago, Card, Failure, FigureNumber, Nothing, Numbers, StatusLine, Trouble } from "../app/parts";
import { energyText, percentText, powerText, timeText, unknown } from "../app/quantity";
import { go, linkTo } from "../app/router";
import { agoText, clockText, momentText } from "../app/time";
import type { ViewProps } from "../app/views";
import { nodeSource } from "./node_source";
import type { NodeSource } from "./node_source";
import { PowerChart } from "./power_chart";
import type { Line } from "./power_chart";
import type { CpuFacts, GpuFacts, Job, Knob, Reading } from "./types";
import { faultsOf, idleNow, knobText, throttleText, valueText, wasteText } from "./words";
import type { Fault, Waste } from "./words";

// Numbers that change faster than this cannot be read.
const shortestLook = 900;

const ranges = [
  { seconds: 60, name: "1 min" },
  { seconds: 600, name: "10 min" },
  { seconds: 7200, name: "2 h" },
  { seconds: 172800, name: "2 days" },
];
const colours = ["role-zeus", "role-front", "role-knowledge_gradient", "role-paper", "role-grid", "other-0", "other-2", "other-1", "other-4", "other-3", "other-5"];

// Draws again when the source has something new, at a pace that one can read.
function useSource(): NodeSource {
  const source = nodeSource();
  const [, redraw] = useState({});
  useEffect(() => {
    let [timer, last] = [0, 0];
    const draw = () => {
      timer = 0;
      last = performance.now();
      redraw({});
    };
    const unfollow = source.follow(() => {
      if (!timer && !document.hidden) timer = window.setTimeout(draw, Math.max(0, shortestLook - (performance.now() - last)));
    });
    // A server that has fallen silent tells nothing, and that must be seen.
    const silence = window.setInterval(() => redraw({}), 2000);
    return () => {
      unfollow();
      clearTimeout(timer);
      clearInterval(silence);
    };
  }, [source]);
  return source;
}

interface Device {
  facts: GpuFacts | CpuFacts;
  gpu?: GpuFacts;
  name: string;
  reading: Reading | undefined;
  knobs: Knob[];
  faults: Fault[];
  waste: Waste;
  line: Line;
}

function devicesOf(source: NodeSource): Device[] {
  const facts = [...(source.facts?.gpus ?? []), ...(source.facts?.cpus ?? [])];
  const now = source.now();
  return facts.map((one, i) => {
    const name = one.name ?? one.device;
    const reading = source.readings.get(one.device);
    const knobs = source.knobs.filter(({ device }) => device === one.device);
    const gpu = "pci_address" in one ? one : undefined;
    const past = source.track(one.device).sum(2, now - 3600, now);
    return {
      facts: one,
      ...(gpu ? { gpu } : {}),
      name,
      reading,
      knobs,
      faults: faultsOf(one, reading, knobs),
      waste: { device: one.device, name, watts: gpu ? idleNow(reading) : 0, joules: past.idle, seconds: past.idleSeconds, known: past.seconds },
      line: { device: one.device, name, colour: colours[i % colours.length]! },
    };
  });
}

function Connection({ source }: { source: NodeSource }) {
  const { state } = source;
  if (state.kind === "ended") return <StatusLine tone="bad" spoken>The server refused: {state.why}</StatusLine>;
  const silent = source.lastHeard ? (performance.now() - source.lastHeard) / 1000 : 0;
  if (state.kind === "waiting" || (state.kind === "connecting" && source.lastHeard > 0))
    return (
      <StatusLine tone="warn" spoken>
        No connection: the numbers are from {clockText(source.lastSeconds + source.wallOffset)}. It is tried again by itself.
      </StatusLine>
    );
  if (!source.lastHeard) return <StatusLine tone="busy">Connecting …</StatusLine>;
  if (silent > 10) return <StatusLine tone="warn" spoken>Nothing has come for {timeText(Math.round(silent))}.</StatusLine>;
  return <StatusLine tone="good">Live</StatusLine>;
}

function LimitLine({ device }: { device: Device }) {
  const { reading, gpu, knobs } = device;
  const limit = knobs.find(({ knob }) => knob.endsWith("power_limit"));
  const enforced = reading?.enforced_limit_watts ?? gpu?.power_limit?.enforced_watts;
  const requested = reading?.requested_limit_watts ?? gpu?.power_limit?.requested_watts;
  if (typeof enforced !== "number") return null;
  const stricter = typeof requested === "number" && enforced < requested - 0.5;
  const why = limit ? knobText(limit) : "";
  const standard = gpu?.power_limit?.default_watts;
  const isDefault = typeof standard === "number" && Math.abs(standard - enforced) < 0.5;
  return (
    <>
      <b>{enforced.toFixed(0)} W</b>
      {why ? <> {why}</> : isDefault ? <span class="faint"> the default</span> : null}
      {limit?.bound_by && <>, <Ago at={limit.bound_by.since} /></>}
      {stricter && <>; a stricter one than the {requested.toFixed(0)} W that were asked for holds: a cap from outside</>}
    </>
  );
}

// Power against the limit: a length that one sees at once.
function Bar({ value, most, colour, label }: { value: number; most: number; colour: string; label: string }) {
  return (
    <div class="meter" role="img" aria-label={label}>
      <i style={{ width: `${Math.min(100, Math.max(0, (100 * value) / most))}%`, background: `var(--${colour})` }} />
    </div>
  );
}

function DeviceCard({ device, source }: { device: Device; source: NodeSource }) {
  const { reading, gpu, knobs, faults, line } = device;
  const lost = faults.some(({ tone }) => tone === "bad");
  const power = lost ? null : reading?.power_watts;
  const most = reading?.enforced_limit_watts ?? gpu?.power_limit?.enforced_watts;
  const clocks = knobs.filter(({ knob, effective }) => knob.endsWith("clock") && effective);
  const throttle = throttleText(reading?.throttle);
  return (
    <Card
      title={
        <a href={linkTo("node", device.facts.device)}>
          <i class="swatch" style={{ background: `var(--${line.colour})` }} aria-hidden="true" />
          {device.name}
        </a>
      }
      label={device.name}
      aside={<span class="faint model">{device.facts.model}</span>}
    >
      <Numbers>
        <FigureNumber label="Power" text={powerText(power, reading?.power_sigma_watts)} />
        {gpu && <FigureNumber label="Busy" text={lost ? unknown : percentText(reading?.compute_utilization, 0)} />}
        {gpu && <FigureNumber label="Temperature" text={lost || typeof reading?.temperature_celsius !== "number" ? unknown : `${reading.temperature_celsius.toFixed(0)} °C`} />}
      </Numbers>
      {typeof most === "number" && typeof power === "number" && (
        <Bar value={power} most={most} colour={line.colour} label={`${percentText(power / most, 0)} of the power limit`} />
      )}
      <dl class="device-facts">
        {gpu && typeof most === "number" && (
          <>
            <dt>Limit</dt>
            <dd><LimitLine device={device} /></dd>
          </>
        )}
        {gpu && typeof reading?.graphics_clock_hertz === "number" && !lost && (
          <>
            <dt>Clock</dt>
            <dd>
              <b>{(reading.graphics_clock_hertz / 1e6).toFixed(0)} MHz</b>
              {clocks.map((knob) => (
                <>; {knob.words} {valueText(knob.effective)} {knobText(knob)}</>
              ))}
              {throttle && <>, {throttle}</>}
            </dd>
          </>
        )}
        <dt>Today</dt>
        <dd>{todayText(source, device)}</dd>
        {typeof reading?.dram_power_watts === "number" && (
          <>
            <dt>Memory</dt>
            <dd>{powerText(reading.dram_power_watts)}</dd>
          </>
        )}
      </dl>
      {lost && faults.map((fault) => <StatusLine tone={fault.tone}>{fault.what}</StatusLine>)}
      {!lost && device.waste.watts > 0 && <StatusLine tone="warn">{powerText(device.waste.watts)} without work</StatusLine>}
    </Card>
  );
}

function todayText(source: NodeSource, device: Device): string {
  const one = source.energy?.devices.find((energy) => energy.device === device.facts.device);
  if (typeof one?.energy_joules !== "number") return unknown;
  const hours = (joules: number) => joules / 3600;
  return energyHours(hours(one.energy_joules), typeof one.sigma_joules === "number" ? hours(one.sigma_joules) : null);
}

// Energy of hours and days, as electricity is paid for.
function energyHours(wattHours: number, sigma: number | null): string {
  return energyText(wattHours, sigma).replace(/J$/, "Wh");
}

function Summary({ source, devices }: { source: NodeSource; devices: Device[] }) {
  const shown = devices.filter(({ faults, reading }) => typeof reading?.power_watts === "number" && !faults.some(({ tone }) => tone === "bad"));
  const power = shown.reduce((sum, { reading }) => sum + (reading!.power_watts ?? 0), 0);
  const sigma = Math.hypot(...shown.map(({ reading }) => reading!.power_sigma_watts ?? 0));
  const idle = devices.reduce((sum, { waste }) => sum + waste.watts, 0);
  let [energy, variance, known] = [0, 0, 0];
  for (const one of source.energy?.devices ?? []) {
    if (typeof one.energy_joules !== "number") continue;
    energy += one.energy_joules / 3600;
    variance += ((one.sigma_joules ?? 0) / 3600) ** 2;
    ++known;
  }
  const midnight = source.energySince && source.energySince.getHours() === 0 && source.energySince.getMinutes() === 0;
  const missing = devices.length - shown.length;
  return (
    <Numbers>
      <FigureNumber
        label="Power now"
        text={shown.length ? powerText(power, sigma) : unknown}
        note={missing > 0 ? `of ${shown.length} of ${devices.length} devices` : undefined}
      />
      <FigureNumber
        label="Energy today"
        text={known ? energyHours(energy, Math.sqrt(variance)) : unknown}
        note={source.energySince && !midnight ? `since ${momentText(source.energySince.getTime() / 1000)}` : undefined}
      />
      <FigureNumber label="Without work" text={powerText(idle)} note={idle > 0 ? "GPUs that draw power and do nothing" : undefined} />
      {source.costs?.lines.map((line) => {
        const [label, ...rest] = line.split(": ");
        return <FigureNumber label={label ?? ""} text={rest.join(": ").replace(/ \(.*/, "")} note={/\((.*)\)/.exec(line)?.[1]} />;
      })}
    </Numbers>
  );
}

function Wastes({ devices }: { devices: Device[] }) {
  // A twentieth of an hour is a pause, not waste.
  const wasted = devices.map(({ waste }) => waste).filter(({ joules, seconds, known }) => joules > 0 && seconds > 0.05 * known);
  wasted.sort((a, b) => b.joules - a.joules);
  if (wasted.length === 0) return null;
  return (
    <Card title="Waste" aside={<span class="faint">last hour, the most first</span>}>
      <ol class="wastes">
        {wasted.slice(0, 5).map((waste) => (
          <li>
            <a href={linkTo("node", waste.device)}>{wasteText(waste)}</a>.
          </li>
        ))}
      </ol>
    </Card>
  );
}

function Jobs({ jobs }: { jobs: Job[] }) {
  const running = jobs.filter(({ state }) => state !== "ended");
  if (running.length === 0) return null;
  return (
    <Card title="Jobs" aside={<span class="faint">in progress</span>}>
      <ul class="plain">
        {running.map((job) => (
          <li>
            <b>{job.id}</b>
            {typeof job.energy_joules === "number" && <>: {energyText(job.energy_joules, job.sigma_joules)}</>}
            {job.since && <>, <Ago at={job.since} /></>}
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Faults({ source, devices }: { source: NodeSource; devices: Device[] }) {
  const faults = devices.flatMap((device) => device.faults);
  const absent = source.facts?.absent ?? [];
  // Devices that never were there are no trouble of this moment.
  const lost = absent.filter(({ what }) => /^gpu:/.test(what));
  const others = absent.filter((one) => !lost.includes(one));
  return (
    <>
      {lost.map(({ what, reason, fix }) => (
        <Trouble title={`${what}: ${reason}`} {...(fix ? { fix } : {})} />
      ))}
      {faults.map((fault) =>
        fault.tone === "bad" ? (
          <Trouble title={fault.what} fix={fault.fix} />
        ) : (
          <StatusLine tone="warn">
            {fault.what} {fault.fix}
          </StatusLine>
        ),
      )}
      {others.length > 0 && (
        <details class="unknown">
          <summary>Not known here: {others.map(({ what }) => what).join(", ")}</summary>
          <ul>
            {others.map(({ what, reason, fix }) => (
              <li>
                <b>{what}</b>: {reason}.{fix && <> {fix}</>}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

function KnobTable({ knobs }: { knobs: Knob[] }) {
  if (knobs.length === 0) return null;
  return (
    <Card title="Knobs">
      <div class="wide" tabIndex={0} role="region" aria-label="Knobs">
        <table>
          <thead>
            <tr>
              {["Knob", "Holds", "Before", "Why"].map((title) => (
                <th scope="col" class={title === "Before" ? "knob-before" : ""}>{title}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {knobs.map((knob) => (
              <tr>
                <td>{knob.words}</td>
                <td>{valueText(knob.effective ?? knob.enforced)}</td>
                <td class="knob-before">{valueText(knob.baseline)}</td>
                <td>
                  {knobText(knob) || "nobody holds it"}
                  {knob.bound_by && <>, since {momentText(knob.bound_by.since)} ({agoText(knob.bound_by.since)})</>}
                  {typeof knob.bound_by?.expires_in_seconds === "number" && <>, for another {timeText(knob.bound_by.expires_in_seconds)} unless it is renewed</>}
                  {knob.leases > 1 && <>; {knob.leases} leases want it</>}
                  {knob.trouble && <>. {knob.trouble}</>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

function Facts({ device }: { device: Device }) {
  const { gpu, facts } = device;
  const rows: [string, string | undefined][] = [
    ["Model", facts.model],
    ["UUID", gpu?.uuid],
    ["PCI address", gpu?.pci_address],
    ["Driver", gpu?.driver],
    ["Limits", facts.ranges?.gpu_power_limit && `${valueText(facts.ranges.gpu_power_limit.lowest)} to ${valueText(facts.ranges.gpu_power_limit.highest)}`],
    ["Default limit", typeof gpu?.power_limit?.default_watts === "number" ? `${gpu.power_limit.default_watts.toFixed(0)} W` : undefined],
    ["Changes by other programs", facts.foreign_changes ? String(facts.foreign_changes) : undefined],
  ];
  return (
    <Card title="The device">
      <dl class="device-facts">
        {rows.map(([name, text]) => text && (
          <>
            <dt>{name}</dt>
            <dd>{text}</dd>
          </>
        ))}
      </dl>
    </Card>
  );
}

function usePast(source: NodeSource, seconds: number): void {
  useEffect(() => {
    // A reading for about every pixel, ten a second at most.
    source.want(Math.min(Math.max(seconds / 600, 0.1), 1), seconds > 7200 ? 60 : seconds > 600 ? 10 : 1);
  }, [source, seconds]);
}

export function NodePage({ parameters, query }: ViewProps) {
  const source = useSource();
  const wanted = Number(query.get("seconds"));
  const range = ranges.find(({ seconds }) => seconds === wanted) ?? ranges[1]!;
  usePast(source, range.seconds);
  const all = devicesOf(source);
  const chosen = parameters.device;
  const devices = chosen === undefined ? all : all.filter(({ facts, name }) => facts.device === chosen || name === chosen);
  const names = devices.map(({ line }) => `${line.device} ${line.colour}`).join();
  const lines = useMemo(() => devices.map(({ line }) => line), [names]);
  const place = chosen === undefined ? ["node"] : ["node", chosen];
  const host = source.facts?.host;
  const heading = useRef<HTMLHeadingElement>(null);
  if (!source.facts)
    return source.error ? <Failure error={source.error} /> : <Nothing>Loading …</Nothing>;
  if (all.length === 0)
    return (
      <>
        <Trouble title={`There is nothing to measure on ${host}`} />
        <Faults source={source} devices={[]} />
      </>
    );
  if (devices.length === 0)
    return (
      <Nothing>
        There is no device {chosen} on {host}: <a href={linkTo("node")}>all devices</a>.
      </Nothing>
    );
  const alone = chosen === undefined ? undefined : devices[0];
  return (
    <>
      <header class="title">
        <div>
          <h1 ref={heading}>
            {alone ? (
              <>
                <a href={linkTo("node")}>{host}</a> / {alone.name}
              </>
            ) : (
              host
            )}
          </h1>
          <Connection source={source} />
        </div>
        {!alone && <Summary source={source} devices={devices} />}
      </header>
      <Faults source={source} devices={devices} />
      <Card
        title="Power"
        aside={
          <div class="ranges" role="group" aria-label="How far back">
            {ranges.map(({ seconds, name }) => (
              <button
                type="button"
                aria-pressed={seconds === range.seconds}
                onClick={() => go(linkTo(...place, { seconds: String(seconds) }))}
              >
                {name}
              </button>
            ))}
          </div>
        }
      >
        <PowerChart
          source={source}
          lines={lines}
          seconds={range.seconds}
          limit={alone?.reading?.enforced_limit_watts ?? undefined}
        />
      </Card>
      {!alone && <Wastes devices={devices} />}
      <div class="cards devices">
        {devices.map((device) => (
          <DeviceCard device={device} source={source} key={device.facts.device} />
        ))}
        {alone && <Facts device={alone} />}
      </div>
      {alone && <KnobTable knobs={alone.knobs} />}
      {!alone && <Jobs jobs={source.jobs} />}
    </>
  );
}
