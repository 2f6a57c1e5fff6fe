// One panel: drawn to the width it has, with what one points at, zoom and keys.
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { Axes, layoutOf } from "./axes";
import type { Layout, Zoom } from "./axes";
import { HeatBar, HeatCells } from "./heat_map";
import { cellTip, nearest, placeOf, tipOf } from "./hover";
import type { Target, Tip } from "./hover";
import { Marks } from "./marks";
import { Tooltip } from "./tooltip";
import type { Palette } from "./palette";
import type { Panel } from "./types";

interface Drag {
  x: number;
  y: number;
  toX: number;
  toY: number;
}

// A shorter drag is a click; a flatter one zooms along x alone.
const shortest = 8;

function useWidth(usual: number) {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(usual);
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const measure = () => element.clientWidth > 0 && setWidth(element.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return { ref, width };
}

function zoomedBy(layout: Layout, drag: Drag): Zoom | null {
  const clampX = (x: number) => Math.min(Math.max(x, layout.left), layout.right);
  const clampY = (y: number) => Math.min(Math.max(y, layout.top), layout.bottom);
  const [left, right] = [drag.x, drag.toX].map(clampX).sort((a, b) => a - b) as [number, number];
  const [top, bottom] = [drag.y, drag.toY].map(clampY).sort((a, b) => a - b) as [number, number];
  if (right - left < shortest) return null;
  const y = { low: layout.y.valueAt(bottom), high: layout.y.valueAt(top) };
  return {
    x: { low: layout.x.valueAt(left), high: layout.x.valueAt(right) },
    y: bottom - top < 3 * shortest ? undefined : y,
  };
}

function describe(panel: Panel, title: string): string {
  const names = panel.series.map((series) => series.name).filter(Boolean);
  const axes = [panel.y.title, panel.x.title].filter(Boolean).join(" against ");
  return [
    panel.title || title,
    axes,
    names.length > 0 ? `Series: ${[...new Set(names)].join(", ")}` : "",
    "Arrow keys walk through the points, Escape shows everything.",
  ]
    .filter(Boolean)
    .join(". ");
}

// The next point that is in sight, `step` further in the series.
function walk(panel: Panel, layout: Layout, from: Target, step: number): Target {
  const count = panel.series[from.series]?.x.length ?? 0;
  for (let index = from.index + step; index >= 0 && index < count; index += step) {
    const { x, y } = placeOf(panel, layout, { series: from.series, index });
    if (Number.isFinite(x) && Number.isFinite(y)) return { series: from.series, index };
  }
  return from;
}

export interface ChartProps {
  panel: Panel;
  palette: Palette;
  title: string;
  height: number;
}

export function Chart({ panel, palette, title, height }: ChartProps) {
  const { ref, width } = useWidth(640);
  const [zoom, setZoom] = useState<Zoom | null>(null);
  const [drag, setDrag] = useState<Drag | null>(null);
  const [target, setTarget] = useState<Target | null>(null);
  const [cell, setCell] = useState<Tip | null>(null);
  const clip = useId();
  const layout = useMemo(() => layoutOf(panel, width, height, zoom), [panel, width, height, zoom]);
  const tip = cell ?? (target ? tipOf(panel, layout, palette, target) : null);

  // Only what one points at changes with the pointer, not the drawing.
  const drawing = useMemo(
    () => (
      <>
        <clipPath id={clip}>
          <rect
            x={layout.left - 4}
            y={layout.top - 4}
            width={Math.max(layout.right - layout.left + 8, 0)}
            height={Math.max(layout.bottom - layout.top + 8, 0)}
          />
        </clipPath>
        <g clip-path={`url(#${clip})`}>
          <HeatCells panel={panel} layout={layout} />
        </g>
        <Axes panel={panel} layout={layout} />
        <g class="marks" clip-path={`url(#${clip})`}>
          {panel.series.map((series) => (
            <g class={`series ${series.role}`} style={{ color: palette(series) }}>
              <Marks
                panel={panel}
                series={series}
                place={{ x: layout.x, y: layout.y, onHeatMap: panel.heat_map !== undefined }}
              />
            </g>
          ))}
        </g>
        <HeatBar panel={panel} layout={layout} />
      </>
    ),
    [panel, layout, palette],
  );

  const reset = () => {
    setZoom(null);
    setDrag(null);
  };
  const forget = () => {
    setTarget(null);
    setCell(null);
  };
  const at = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const scale = width / Math.max(box.width, 1);
    return { x: (event.clientX - box.left) * scale, y: (event.clientY - box.top) * scale };
  };
  const point = (event: PointerEvent) => {
    const { x, y } = at(event);
    if (drag) {
      setDrag({ ...drag, toX: x, toY: y });
      return;
    }
    const found = nearest(panel, layout, x, y);
    const place = found ? placeOf(panel, layout, found) : null;
    // On a heat map the cell counts, but where the pointer is on a mark.
    const onMark = place !== null && Math.hypot(place.x - x, place.y - y) < 10;
    setCell(panel.heat_map && !onMark ? cellTip(panel, layout, x, y) : null);
    setTarget(found);
  };
  const press = (event: PointerEvent) => {
    if (event.pointerType === "touch" || event.button !== 0) return;
    const { x, y } = at(event);
    (event.currentTarget as Element).setPointerCapture(event.pointerId);
    forget();
    setDrag({ x, y, toX: x, toY: y });
  };
  const release = () => {
    if (!drag) return;
    const next = zoomedBy(layout, drag);
    if (next) setZoom(next);
    setDrag(null);
  };
  const key = (event: KeyboardEvent) => {
    const now = target ?? { series: 0, index: -1 };
    const count = Math.max(panel.series.length, 1);
    if (event.key === "Escape") {
      reset();
      forget();
    } else if (event.key === "ArrowRight") setTarget(walk(panel, layout, now, 1));
    else if (event.key === "ArrowLeft") setTarget(walk(panel, layout, now, -1));
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const series = (now.series + (event.key === "ArrowDown" ? 1 : count - 1)) % count;
      setTarget(walk(panel, layout, { series, index: -1 }, 1));
    } else return;
    setCell(null);
    event.preventDefault();
  };

  return (
    <div class="chart" ref={ref}>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        width={width}
        height={height}
        role="img"
        tabIndex={0}
        aria-label={describe(panel, title)}
        onPointerMove={point}
        onPointerDown={press}
        onPointerUp={release}
        onPointerCancel={() => setDrag(null)}
        onPointerLeave={forget}
        onDblClick={reset}
        onKeyDown={key}
        onBlur={forget}
      >
        {drawing}
      </svg>
      {/* A layer of its own: the drawing below is not painted again with every move. */}
      <svg class="overlay" viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
        {tip && !cell && (
          <>
            <path class="cross" d={`M${tip.x} ${layout.top}V${layout.bottom}`} />
            <circle class="spot" cx={tip.x} cy={tip.y} r={5} />
          </>
        )}
        {drag && (
          <rect
            class="selection"
            x={Math.min(drag.x, drag.toX)}
            y={Math.abs(drag.toY - drag.y) < 3 * shortest ? layout.top : Math.min(drag.y, drag.toY)}
            width={Math.abs(drag.toX - drag.x)}
            height={
              Math.abs(drag.toY - drag.y) < 3 * shortest
                ? layout.bottom - layout.top
                : Math.abs(drag.toY - drag.y)
            }
          />
        )}
      </svg>
      {zoom && (
        <button class="reset" type="button" onClick={reset}>
          Show everything
        </button>
      )}
      {tip && <Tooltip tip={tip} width={width} />}
      <div class="spoken" aria-live="polite">
        {tip ? [tip.title, ...tip.rows.map((row) => `${row.name} ${row.value} ${row.spread}`)].join("; ") : ""}
      </div>
    </div>
  );
}
