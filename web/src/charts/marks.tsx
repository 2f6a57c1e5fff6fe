// What series look like.
import type { JSX } from "preact";
import { distinct, outline, runsOf, thinned, thinnedFrom } from "./points";
import type { Spot } from "./points";
import { barSpacing } from "./scale";
import { Spans } from "./spans";
import type { Scale } from "./scale";
import type { Panel, Series } from "./types";

export interface Place {
  x: Scale;
  y: Scale;
  // Marks on a heat map get a rim, to be seen on every colour.
  onHeatMap: boolean;
}

// Lines up to this many points show them.
const dottedUpTo = 24;
// Dots of more points than this are one path.
const joinedFrom = 1500;

export interface BarSlot {
  width: number;
  offset: number;
}

// Whether each x has a bar of one series at most.
function standAlone(bars: Series[]): boolean {
  const places = bars.flatMap((series) => [...new Set(series.x)]);
  return new Set(places).size === places.length;
}

// Bars of several series stand side by side where they share an x, and in the middle of their places
// otherwise; hidden ones leave no gap.
export function slotOf(panel: Panel, series: Series): BarSlot {
  const bars = panel.series.filter((one) => one.mark === "bars");
  if (bars.length === 0) return { width: 0, offset: 0 };
  if (standAlone(bars)) return { width: 0.8 * 0.92 * barSpacing(panel), offset: 0 };
  const width = (0.8 * barSpacing(panel)) / bars.length;
  return { width: width * 0.92, offset: (bars.indexOf(series) - (bars.length - 1) / 2) * width };
}

function Band({ series, place: { x, y } }: { series: Series; place: Place }) {
  const lows = runsOf(series, series.low ?? [], x, y);
  const highs = runsOf(series, series.high ?? [], x, y);
  if (lows.length !== highs.length) return null;
  const shapes = highs.map((high, i) => {
    const forward = thinned(high, x.from, x.to);
    const back = [...thinned(lows[i]!, x.from, x.to)].reverse();
    return `${outline(forward)}L${outline(back).slice(1)}Z`;
  });
  return shapes.length > 0 ? <path class="band" d={shapes.join("")} /> : null;
}

function Whisker(props: { series: Series; place: Place; x: number; index: number }) {
  const { series, place, x, index } = props;
  const low = place.y.place(series.low?.[index]);
  const high = place.y.place(series.high?.[index]);
  if (!Number.isFinite(low) || !Number.isFinite(high)) return null;
  return <path class="whisker" d={`M${x} ${low}V${high}M${x - 3} ${low}h6M${x - 3} ${high}h6`} />;
}

function Dots({ spots, radius }: { spots: Spot[]; radius: number }) {
  if (spots.length <= joinedFrom)
    return <>{spots.map(({ x, y }) => <circle class="dot" cx={x} cy={y} r={radius} />)}</>;
  // Thousands of elements would be slow: one path of round caps looks the same.
  const d = spots.map(({ x, y }) => `M${x.toFixed(1)} ${y.toFixed(1)}h0`).join("");
  return <path class="cloud" stroke-width={radius * 1.2} d={d} />;
}

function Line({ series, place }: { series: Series; place: Place }) {
  const { x, y } = place;
  const runs = runsOf(series, series.y, x, y);
  const steps = series.mark === "steps";
  const shown = runs.map((run) => thinned(run, x.from, x.to));
  const dotted = series.x.length <= dottedUpTo && !steps;
  // A point between two gaps would not be seen otherwise.
  const dots = runs.flatMap((run) => (dotted || run.length === 1 ? run : []));
  return (
    <>
      <Band series={series} place={place} />
      <path class="line" d={shown.map((run) => outline(run, steps)).join("")} />
      <Dots spots={dots} radius={2.6} />
    </>
  );
}

// Names on the side where there is room for them.
function Labels({ series, spots, place }: { series: Series; spots: Spot[]; place: Place }) {
  const middle = (place.x.from + place.x.to) / 2;
  return (
    <>
      {spots.map(({ x, y, index }) => (
        <text class="name" x={x < middle ? x + 9 : x - 9} y={y - 7} text-anchor={x < middle ? "start" : "end"}>
          {series.labels?.[index]}
        </text>
      ))}
    </>
  );
}

function Points({ series, place }: { series: Series; place: Place }) {
  const spots = distinct(runsOf(series, series.y, place.x, place.y).flat());
  // A few points among many are what the figure is about.
  const few = series.x.length <= 8;
  const whiskers = series.low && series.high && series.x.length <= thinnedFrom;
  return (
    <>
      {whiskers &&
        spots.map(({ x, index }) => <Whisker series={series} place={place} x={x} index={index} />)}
      <g class={few ? "few" : "many"}>
        <Dots spots={spots} radius={few ? 5 : series.x.length > 400 ? 1.6 : 3.4} />
      </g>
      {series.labelled && <Labels series={series} spots={spots} place={place} />}
    </>
  );
}

function Bars({ series, place, slot }: { series: Series; place: Place; slot: BarSlot }) {
  const { foot } = place.y;
  return (
    <>
      {series.x.map((x, index) => {
        if (x === null) return null;
        const left = place.x.place(x + slot.offset - slot.width / 2);
        const right = place.x.place(x + slot.offset + slot.width / 2);
        const top = place.y.place(series.y[index]);
        if (![left, right, top].every(Number.isFinite)) return null;
        return (
          <>
            <rect
              class="bar"
              x={left}
              y={Math.min(top, foot)}
              width={Math.max(right - left, 0.5)}
              height={Math.abs(foot - top)}
            />
            <g class="upon">
              <Whisker series={series} place={place} x={(left + right) / 2} index={index} />
            </g>
          </>
        );
      })}
    </>
  );
}

// Later steps are darker, and the last is the largest.
function Search({ series, place }: { series: Series; place: Place }) {
  const shade = (spot: Spot) => 0.45 + (0.55 * (spot.index + 1)) / series.x.length;
  return (
    <>
      {runsOf(series, series.y, place.x, place.y).map((run) => (
        <>
          {place.onHeatMap && <path class="rim" d={outline(run)} />}
          {run.length > joinedFrom ? (
            <path class="line" d={outline(run)} />
          ) : (
            run.map((spot, i) => (
              <g opacity={shade(spot)}>
                {i > 0 && <path class="line" d={outline([run[i - 1]!, spot])} />}
                <circle class="dot" cx={spot.x} cy={spot.y} r={spot.index + 1 === series.x.length ? 5 : 3.2} />
              </g>
            ))
          )}
        </>
      ))}
    </>
  );
}

function Rule({ series, place: { x, y } }: { series: Series; place: Place }) {
  const d = runsOf(series, series.y, x, y).map((run) => outline(thinned(run, x.from, x.to)));
  return <path class="guide" d={d.join("")} />;
}

export function Marks(props: { panel: Panel; series: Series; place: Place }): JSX.Element | null {
  const { panel, series, place } = props;
  switch (series.mark) {
    case "line":
    case "steps":
      return <Line series={series} place={place} />;
    case "points":
      return <Points series={series} place={place} />;
    case "bars":
      return <Bars series={series} place={place} slot={slotOf(panel, series)} />;
    case "area":
      return <Band series={series} place={place} />;
    case "path":
      return <Search series={series} place={place} />;
    case "rule":
      return <Rule series={series} place={place} />;
    case "spans":
      return <Spans panel={panel} series={series} place={place} />;
    default:
      return null;
  }
}
