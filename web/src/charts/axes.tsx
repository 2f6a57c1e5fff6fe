// The frame of a chart: where it is drawn, ticks, grid and titles.
import { extentOf, makeScale } from "./scale";
import type { Extent, Scale } from "./scale";
import type { Axis, Panel } from "./types";

export interface Zoom {
  x: Extent;
  y?: Extent | undefined;
}

export interface Layout {
  width: number;
  height: number;
  left: number;
  right: number;
  top: number;
  bottom: number;
  slanted: boolean;
  x: Scale;
  y: Scale;
}

const letter = 6.3;
const longest = 20; // Characters of the name of a category.

export function cut(text: string, characters: number): string {
  const letters = [...text];
  return letters.length <= characters ? text : letters.slice(0, characters - 1).join("") + "…";
}

function labelWidth(labels: string[]): number {
  return Math.min(Math.max(0, ...labels.map((label) => [...label].length)), longest) * letter;
}

function yScale(panel: Panel, from: number, to: number, zoom: Zoom | null): Scale {
  const ticks = Math.max(Math.floor((from - to) / 44), 2);
  // Zoomed along x alone, the axis of y fits what is in sight.
  const extent = extentOf(panel, "y", zoom && !zoom.y ? zoom.x : undefined);
  return makeScale({ axis: panel.y, extent, from, to, ticks, zoomed: zoom?.y });
}

export function layoutOf(panel: Panel, width: number, height: number, zoom: Zoom | null): Layout {
  const categories = panel.x.categories ?? [];
  const coloured = panel.heat_map !== undefined || panel.colour_scale !== undefined;
  const right = width - (coloured ? 66 : 12);
  const slot = (right - 70) / Math.max(categories.length, 1);
  const slanted = labelWidth(categories) + 4 > slot;
  const top = coloured ? 24 : 12;
  const bottom =
    height - (panel.x.title ? 42 : 24) - (slanted ? labelWidth(categories) * 0.6 : 0);
  const y = yScale(panel, bottom, top, zoom);
  const beside = (panel.y.title ? 26 : 8) + labelWidth(y.ticks.map((tick) => tick.label)) + 8;
  // The first of the slanted names reaches out to the left.
  const below = slanted ? labelWidth(categories.slice(0, 1)) * 0.8 - slot / 2 + 4 : 0;
  const left = Math.max(beside, below);
  const x = makeScale({
    axis: panel.x,
    extent: extentOf(panel, "x"),
    from: left,
    to: right,
    ticks: Math.max(Math.floor((right - left) / 70), 2),
    zoomed: zoom?.x,
  });
  return { width, height, left, right, top, bottom, slanted, x, y };
}

// Categories that lie too close for all of their names show some of them.
function shown(axis: Axis, scale: Scale, room: number): Scale["ticks"] {
  if (!axis.categories) return scale.ticks;
  const slot = Math.abs(scale.to - scale.from) / (scale.high - scale.low);
  const every = Math.max(1, Math.ceil(room / slot));
  return scale.ticks.filter((tick) => tick.value % every === 0);
}

function XLabel({ x, y, text, slanted }: { x: number; y: number; text: string; slanted: boolean }) {
  const label = cut(text, longest);
  return slanted ? (
    <text class="tick end" transform={`translate(${x + 4} ${y + 12}) rotate(-38)`}>
      {label}
    </text>
  ) : (
    <text class="tick middle" x={x} y={y + 16}>
      {label}
    </text>
  );
}

export function Axes({ panel, layout }: { panel: Panel; layout: Layout }) {
  const { left, right, top, bottom, x, y, slanted } = layout;
  return (
    <g aria-hidden="true">
      {shown(panel.y, y, 13).map(({ value, label }) => (
        <g>
          {!panel.y.categories && <path class="grid" d={`M${left} ${y.place(value)}H${right}`} />}
          <text class="tick end" x={left - 7} y={y.place(value) + 4}>
            {cut(label, longest)}
          </text>
        </g>
      ))}
      {shown(panel.x, x, 15).map(({ value, label }) => (
        <g>
          {!panel.x.categories && <path class="grid" d={`M${x.place(value)} ${top}V${bottom}`} />}
          <XLabel x={x.place(value)} y={bottom} text={label} slanted={slanted} />
        </g>
      ))}
      <path class="frame" d={`M${left} ${top}V${bottom}H${right}`} />
      <text class="axis middle" x={(left + right) / 2} y={layout.height - 6}>
        {cut(panel.x.title, Math.floor(layout.width / letter))}
      </text>
      <text class="axis middle" transform={`translate(14 ${(top + bottom) / 2}) rotate(-90)`}>
        {cut(panel.y.title, Math.floor(layout.height / letter))}
      </text>
    </g>
  );
}
