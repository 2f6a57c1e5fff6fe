// What one points at, and what is said about it.
import { heatValue } from "./heat_map";
import { formatNumber } from "./format";
import { slotOf } from "./marks";
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
  const offset = series.mark === "bars" ? slotOf(panel, series).offset : 0;
  return { x: layout.x.place(at + offset), y: layout.y.place(yOf(series, target.index)) };
}

function inSight(layout: Layout, { x, y }: { x: number; y: number }): boolean {
  const margin = 1;
  return (
    x >= layout.left - margin &&
    x <= layout.right + margin &&
    y >= layout.top - margin &&
    y <= layout.bottom + margin
  );
}

// Lines are met by their x, dots by their distance.
function distance(series: Series, dx: number, dy: number): number {
  const flat = ["line", "steps", "area", "rule"].includes(series.mark);
  return Math.hypot(dx, flat ? dy * 0.3 : dy) + (series.mark === "rule" ? 12 : 0);
}

// The nearest point that can be seen.
export function nearest(panel: Panel, layout: Layout, x: number, y: number): Target | null {
  let best: Target | null = null;
  let least = Infinity;
  panel.series.forEach((series, s) => {
    for (let index = 0; index < series.x.length; ++index) {
      const place = placeOf(panel, layout, { series: s, index });
      if (!inSight(layout, place)) continue;
      const far = distance(series, place.x - x, place.y - y);
      if (far < least) [least, best] = [far, { series: s, index }];
    }
  });
  return best;
}

function axisText(axis: Axis, value: Value | undefined): string {
  return (
    (typeof value === "number" ? axis.categories?.[value] : undefined) ?? formatNumber(value)
  );
}

function valueText(panel: Panel, series: Series, index: number): string {
  const spread =
    series.low?.[index] !== undefined && series.high?.[index] !== undefined
      ? `${formatNumber(series.low[index])} … ${formatNumber(series.high[index])}`
      : "";
  if (series.mark === "area") return spread;
  const value = axisText(panel.y, series.y[index]);
  return spread ? `${value} (${spread})` : value;
}

// The point of another series that belongs to the same x.
function companion(panel: Panel, series: Series, s: number, target: Target): number {
  if (s === target.series) return target.index;
  const { mark } = panel.series[target.series]!;
  const alone = (kind: string) => kind === "points" || kind === "path" || kind === "rule";
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
    return [{ colour: palette(one), name: one.name, value: valueText(panel, one, index) }];
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
      },
    ],
  };
}
