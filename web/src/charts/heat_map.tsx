import { formatNumber } from "./format";
import { heatColour, inkOn, spanColour } from "./palette";
import { emptyExtent, makeScale, take } from "./scale";
import type { Scale } from "./scale";
import type { Layout } from "./axes";
import type { HeatMap, Panel, Value } from "./types";

export function heatScale(map: HeatMap, from: number, to: number): Scale {
  const extent = emptyExtent();
  for (const value of map.values) if (!map.logarithmic || (value ?? 0) > 0) take(extent, value);
  const axis = { title: "", logarithmic: map.logarithmic, from_zero: false };
  return makeScale({ axis, extent, from, to, ticks: 4 });
}

// The colours of a panel: those of its map or of its spans.
export function coloursOf(panel: Panel, from: number, to: number): Scale | null {
  if (panel.heat_map) return heatScale(panel.heat_map, from, to);
  if (!panel.colour_scale) return null;
  const extent = emptyExtent();
  take(extent, panel.colour_scale.low);
  take(extent, panel.colour_scale.high);
  const axis = { title: "", logarithmic: false, from_zero: false };
  return makeScale({ axis, extent, from, to, ticks: 4 });
}

export function heatValue(panel: Panel, column: number, row: number): Value {
  return panel.heat_map?.values[row * (panel.x.categories?.length ?? 0) + column] ?? null;
}

export function HeatCells({ panel, layout }: { panel: Panel; layout: Layout }) {
  const map = panel.heat_map;
  if (!map) return null;
  const scale = heatScale(map, 0, 1);
  const width = Math.abs(layout.x.place(1) - layout.x.place(0));
  const height = Math.abs(layout.y.place(1) - layout.y.place(0));
  // Numbers only where marks do not cover them and they fit.
  const numbers = panel.series.length === 0 && width > 34 && height > 18;
  return (
    <g class="cells">
      {(panel.y.categories ?? []).flatMap((_, row) =>
        (panel.x.categories ?? []).map((_, column) => {
          const value = heatValue(panel, column, row);
          const share = scale.place(value);
          const [x, y] = [layout.x.place(column), layout.y.place(row)];
          const known = Number.isFinite(share);
          return (
            <g>
              <rect
                class={known ? "cell" : "cell absent"}
                x={x - width / 2 + 0.5}
                y={y - height / 2 + 0.5}
                width={Math.max(width - 1, 0.5)}
                height={Math.max(height - 1, 0.5)}
                {...(known ? { fill: heatColour(share) } : {})}
              />
              {numbers && known && (
                <text class="tick middle" style={{ fill: inkOn(share) }} x={x} y={y + 4}>
                  {formatNumber(Number(value!.toPrecision(3)))}
                </text>
              )}
            </g>
          );
        }),
      )}
    </g>
  );
}

// The scale of colours beside the chart.
export function HeatBar({ panel, layout }: { panel: Panel; layout: Layout }) {
  const steps = 32;
  const scale = coloursOf(panel, layout.bottom, layout.top);
  if (!scale) return null;
  const step = (layout.bottom - layout.top) / steps;
  const left = layout.right + 12;
  return (
    <g aria-hidden="true">
      {Array.from({ length: steps }, (_, i) => (
        <rect
          x={left}
          y={layout.bottom - step * (i + 1)}
          width={10}
          height={step + 0.5}
          fill={(panel.heat_map ? heatColour : spanColour)((i + 0.5) / steps)}
        />
      ))}
      {scale.ticks.map(({ value, label }) => (
        <text class="tick" x={left + 14} y={scale.place(value) + 4}>
          {label}
        </text>
      ))}
      <text class="tick end" x={layout.width - 2} y={layout.top - 10}>
        {panel.heat_map?.title ?? panel.colour_scale?.title}
      </text>
    </g>
  );
}
