// From values to places on the screen, and where to write which numbers. The drawings of
// zeus/report/scale.cc follow the same rules.
import { logLabel, tickLabel } from "./format";
import type { Axis, Panel, Value } from "./types";

export interface Extent {
  low: number;
  high: number;
}

export interface Tick {
  value: number;
  label: string;
}

export interface Scale {
  low: number;
  high: number;
  from: number;
  to: number;
  logarithmic: boolean;
  foot: number; // Where bars stand.
  ticks: Tick[];
  // NaN for what has no place.
  place(value: Value | undefined): number;
  valueAt(place: number): number;
}

const padding = 0.04;

export function emptyExtent(): Extent {
  return { low: Infinity, high: -Infinity };
}

export function take(extent: Extent, value: Value | undefined): void {
  if (typeof value !== "number" || !Number.isFinite(value)) return;
  if (value < extent.low) extent.low = value;
  if (value > extent.high) extent.high = value;
}

// The room that the bars of one x share, in units of x.
export function barSpacing(panel: Panel): number {
  if (panel.x.categories) return 1;
  const places = panel.series
    .filter((series) => series.mark === "bars")
    .flatMap((series) => series.x)
    .filter((x): x is number => x !== null)
    .sort((a, b) => a - b);
  let spacing = Infinity;
  for (let i = 1; i < places.length; ++i) {
    const gap = places[i]! - places[i - 1]!;
    if (gap > 0) spacing = Math.min(spacing, gap);
  }
  return Number.isFinite(spacing) ? spacing : 1;
}

// The range that an axis must hold; `within` limits the other axis to what is in sight.
export function extentOf(panel: Panel, direction: "x" | "y", within?: Extent): Extent {
  const axis = panel[direction];
  const extent = emptyExtent();
  const add = (value: Value | undefined) => {
    if (!axis.logarithmic || (value ?? 0) > 0) take(extent, value);
  };
  for (const series of panel.series) {
    if (direction === "x") {
      series.x.forEach(add);
      series.until?.forEach(add);
      continue;
    }
    series.x.forEach((x, i) => {
      if (x === null || (within && (x < within.low || x > within.high))) return;
      if (series.mark !== "area") add(series.y[i]);
      add(series.low?.[i]);
      add(series.high?.[i]);
    });
    // Bars stand on zero, if not on a base.
    if (series.mark === "bars" && (axis.base !== undefined || !axis.logarithmic)) add(axis.base ?? 0);
  }
  const bars = panel.series.some((series) => series.mark === "bars");
  if (direction === "x" && bars && !axis.categories && extent.low <= extent.high) {
    const room = barSpacing(panel) / 2;
    if (extent.low > room || !axis.logarithmic) extent.low -= room;
    extent.high += room;
  }
  return extent;
}

export function roundStep(wish: number): number {
  const power = 10 ** Math.floor(Math.log10(wish));
  return power * ([1, 2, 5].find((factor) => factor * power >= wish * (1 - 1e-9)) ?? 10);
}

// Two at least, where there are so many round numbers.
export function linearTicks(low: number, high: number, count: number): Tick[] {
  for (let wish = count; wish < count + 3; ++wish) {
    const ticks = roundNumbers(low, high, wish);
    if (ticks.length >= 2) return ticks;
  }
  return roundNumbers(low, high, count);
}

function roundNumbers(low: number, high: number, count: number): Tick[] {
  const step = roundStep((high - low) / Math.max(count, 1));
  const ticks: Tick[] = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) {
    const value = i === 0 ? 0 : i * step;
    ticks.push({ value, label: tickLabel(value, step) });
    if (ticks.length > 100) break; // Beyond what doubles resolve.
  }
  return ticks;
}

// The digits that ticks within a decade begin with, from many to few.
const leadingDigits = [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 3, 5], [1, 2, 5], [1, 3], [1]];

function decadeTicks(low: number, high: number, digits: number[], every: number): Tick[] {
  const ticks: Tick[] = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); ++e) {
    if (e % every !== 0) continue;
    for (const digit of digits) {
      const value = digit * 10 ** e;
      if (value >= low && value <= high) ticks.push({ value, label: logLabel(value) });
    }
  }
  return ticks;
}

// As many as there is room for; round numbers that lie evenly where the axis is less than a decade.
export function logTicks(low: number, high: number, count: number): Tick[] {
  const every = Math.max(1, Math.ceil(Math.log10(high / low) / Math.max(count, 1)));
  for (const digits of leadingDigits) {
    if (every > 1 && digits.length > 1) continue;
    const ticks = decadeTicks(low, high, digits, every);
    if (ticks.length <= count + 1 && ticks.length >= Math.min(3, count)) return ticks;
  }
  const decades = decadeTicks(low, high, [1], every);
  return decades.length >= 2 ? decades : linearTicks(low, high, count);
}

function categoryTicks(categories: string[], low: number, high: number): Tick[] {
  return categories
    .map((label, value) => ({ value, label }))
    .filter(({ value }) => value >= low && value <= high);
}

// The range that an axis shows: some room around the values.
function domainOf(axis: Axis, extent: Extent): Extent & { logarithmic: boolean } {
  if (axis.categories) return { low: -0.5, high: axis.categories.length - 0.5, logarithmic: false };
  let { low, high } = extent;
  if (axis.logarithmic && low <= high && low > 0) {
    const room = 10 ** Math.max(Math.log10(high / low) * padding, 0.02);
    return { low: low / room, high: high * room, logarithmic: true };
  }
  if (low > high) [low, high] = [0, 1];
  if (axis.from_zero) [low, high] = [Math.min(low, 0), Math.max(high, 0)];
  if (low === high) {
    const room = low === 0 ? 1 : Math.abs(low) / 2;
    [low, high] = [low - room, high + room];
  }
  const room = (high - low) * padding;
  return {
    low: low === 0 ? 0 : low - room,
    high: high === 0 ? 0 : high + room,
    logarithmic: false,
  };
}

export interface ScaleOptions {
  axis: Axis;
  extent: Extent;
  from: number;
  to: number;
  ticks: number;
  // The range that was zoomed to, instead of everything.
  zoomed?: Extent | undefined;
}

export function makeScale({ axis, extent, from, to, ticks, zoomed }: ScaleOptions): Scale {
  const domain = domainOf(axis, extent);
  const { logarithmic } = domain;
  const { low, high } = zoomed ?? domain;
  const ratio = logarithmic ? Math.log(high / low) : high - low;
  const place = (value: Value | undefined) => {
    if (typeof value !== "number" || !Number.isFinite(value)) return NaN;
    if (logarithmic && value <= 0) return NaN;
    const share = (logarithmic ? Math.log(value / low) : value - low) / ratio;
    return from + share * (to - from);
  };
  return {
    low,
    high,
    from,
    to,
    logarithmic,
    foot: logarithmic && axis.base === undefined ? from : place(axis.base ?? 0),
    ticks: axis.categories
      ? categoryTicks(axis.categories, low, high)
      : logarithmic
        ? logTicks(low, high, ticks)
        : linearTicks(low, high, ticks),
    place,
    valueAt(place) {
      const share = (place - from) / (to - from);
      return logarithmic ? low * Math.exp(share * ratio) : low + share * ratio;
    },
  };
}
