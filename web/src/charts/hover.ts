// The point under the cursor, and the text that is shown for it.
import { coloursOf, heatValue } from "./heat_map";
import { formatNumber } from "./format";
import { slotOf } from "./marks";
import { spanColour } from "./palette";
import { spanAt, spanPlace } from "./spans";
import type { Layout } from "./axes";
import type { Palette } from "./palette";
import type { Axis, Panel, Series, Value } from "./types";

export interface Target {
  series: number;
  index: number;
}

export interface TipRow {
  colour: string;
  name: string;
  value: string;
  spread: string;
}

export interface Tip {
  x: number;
  y: number;
  title: string;
  rows: TipRow[];
}

function yOf(series: Series, index: number): Value | undefined {
  return series.mark === "area" ? series.high?.[index] : series.y[index];
}

// Where a point is drawn; NaN where it is not.
export function placeOf(panel: Panel, layout: Layout, target: Target): { x: number; y: number } {
  const series = panel.series[target.series];
  const at = series?.x[target.index];
  if (!series || at === undefined || at === null) return { x: NaN, y: NaN };
  if (series.mark === "spans") return spanPlace(series, layout, target.index);
  const offset = series.mark === "bars" ? slotOf(panel, series).offset : 0;
  return { x: layout.x.place(at + offset), y: layout.y.place(yOf(series, target.index)) };
}

function inSight(layout: Layout, x: number, y: number): boolean {
  const margin = 1;
  return (
    x >= layout.left - margin &&
    x <= layout.right + margin &&
    y >= layout.top - margin &&
    y <= layout.bottom + margin
  );
}

// The nearest point that can be seen. Lines are met by their x, dots by their distance. Runs with
// every move of the pointer over every point, so it makes no objects.
export function nearest(panel: Panel, layout: Layout, x: number, y: number): Target | null {
  let least = Infinity;
  let best: Target | null = null;
  panel.series.forEach((series, s) => {
    if (series.mark === "spans") {
      // The one below the pointer, whatever else is near.
      const index = spanAt(series, layout.x.valueAt(x), layout.y.valueAt(y));
      if (index >= 0) [least, best] = [0, { series: s, index }];
      return;
    }
    const flatness = ["line", "steps", "area", "rule"].includes(series.mark) ? 0.3 : 1;
    const handicap = series.mark === "rule" ? 12 : 0;
    const offset = series.mark === "bars" ? slotOf(panel, series).offset : 0;
    let found = -1;
    for (let index = 0; index < series.x.length; ++index) {
      const at = series.x[index];
      if (at === null || at === undefined) continue;
      const placeX = layout.x.place(at + offset);
      if (Math.abs(placeX - x) + handicap >= least) continue;
      const placeY = layout.y.place(yOf(series, index));
      if (!inSight(layout, placeX, placeY)) continue;
      const far = Math.hypot(placeX - x, flatness * (placeY - y)) + handicap;
      if (far < least) [least, found] = [far, index];
    }
    if (found >= 0) best = { series: s, index: found };
  });
  return best;
}

function axisText(axis: Axis, value: Value | undefined): string {
  return (
    (typeof value === "number" ? axis.categories?.[value] : undefined) ?? formatNumber(value)
  );
}

function spanRow(panel: Panel, series: Series, index: number): TipRow {
  const heat = series.heat?.[index];
  const share = coloursOf(panel, 0, 1)?.place(heat) ?? NaN;
  return {
    colour: Number.isFinite(share) ? spanColour(share) : "var(--frame)",
    name: panel.colour_scale?.title ?? series.name,
    value: formatNumber(heat),
    spread: `${formatNumber(series.x[index])} … ${formatNumber(series.until?.[index])}`,
  };
}

function rowOf(panel: Panel, series: Series, index: number, palette: Palette): TipRow {
  if (series.mark === "spans") return spanRow(panel, series, index);
  const [low, high] = [series.low?.[index], series.high?.[index]];
  const known = typeof low === "number" && typeof high === "number";
  return {
    colour: palette(series),
    name: series.name,
    value: series.mark === "area" ? "" : axisText(panel.y, series.y[index]),
    spread: known ? `${formatNumber(low)} … ${formatNumber(high)}` : "",
  };
}

// The point of another series that belongs to the same x.
function companion(panel: Panel, series: Series, s: number, target: Target): number {
  if (s === target.series) return target.index;
  const { mark } = panel.series[target.series]!;
  const alone = (kind: string) => ["points", "path", "rule", "spans"].includes(kind);
  if (alone(mark) || alone(series.mark)) return -1;
  return series.x.indexOf(panel.series[target.series]!.x[target.index]!);
}

export function tipOf(panel: Panel, layout: Layout, palette: Palette, target: Target): Tip | null {
  const series = panel.series[target.series];
  if (!series) return null;
  const place = placeOf(panel, layout, target);
  if (!Number.isFinite(place.x) || !Number.isFinite(place.y)) return null;
  const x = axisText(panel.x, series.x[target.index]);
  const label = series.labels?.[target.index];
  const rows = panel.series.flatMap((one, s) => {
    const index = companion(panel, one, s, target);
    if (index < 0) return [];
    return [rowOf(panel, one, index, palette)];
  });
  return { ...place, title: label || (panel.x.title ? `${panel.x.title}: ${x}` : x), rows };
}

// The cell of a heat map below a place.
export function cellTip(panel: Panel, layout: Layout, x: number, y: number): Tip | null {
  if (!panel.heat_map) return null;
  const column = Math.round(layout.x.valueAt(x));
  const row = Math.round(layout.y.valueAt(y));
  const names = [panel.x.categories?.[column], panel.y.categories?.[row]];
  if (names[0] === undefined || names[1] === undefined) return null;
  return {
    x: layout.x.place(column),
    y: layout.y.place(row),
    title: `${names[0]}, ${names[1]}`,
    rows: [
      {
        colour: "var(--frame)",
        name: panel.heat_map.title,
        value: formatNumber(heatValue(panel, column, row)),
        spread: "",
      },
    ],
  };
}
