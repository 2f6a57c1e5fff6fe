import { spanColour } from "../charts/palette";
import type { Palette } from "../charts/palette";
import type { Series } from "../charts/types";

function Key({ series }: { series: Series }) {
  const marks = {
    line: <path class="line" d="M1 6h18" />,
    steps: <path class="line" d="M1 10h6v-5h6v-3h6" />,
    path: <path class="line" d="M1 10L8 3L12 8L19 2" />,
    points: <circle class="dot" cx={10} cy={6} r={4} />,
    bars: <rect class="bar" x={4} y={1} width={12} height={10} rx={1.5} />,
    area: <rect class="band" x={1} y={1} width={18} height={10} />,
    rule: <path class="guide" d="M1 6h18" />,
    spans: [0.1, 0.5, 0.9].map((share, i) => (
      <rect class="outlined" fill={spanColour(share)} x={1 + 6 * i} y={1} width={6} height={10} />
    )),
  };
  return (
    <svg class="key" width={20} height={12} aria-hidden="true">
      <g class={series.role}>{marks[series.mark]}</g>
    </svg>
  );
}

export interface LegendProps {
  series: Series[];
  palette: Palette;
  hidden: Set<string>;
  toggle: (name: string) => void;
  colours?: string | undefined; // The meaning of the colours of spans: "power (W)".
}

// Names of the series; a press hides or shows one.
export function Legend({ series, palette, hidden, toggle, colours }: LegendProps) {
  return (
    <div class="legend" role="group" aria-label="Series">
      {series.map((one) => (
        <button
          type="button"
          aria-pressed={!hidden.has(one.name)}
          style={{ "--key": palette(one), color: palette(one) }}
          onClick={() => toggle(one.name)}
        >
          <Key series={one} />
          <span>
            {one.name}
            {one.mark === "spans" && colours ? `, coloured by ${colours}` : ""}
          </span>
        </button>
      ))}
    </div>
  );
}
