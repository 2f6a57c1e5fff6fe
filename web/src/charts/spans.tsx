// Bars from a start to an end in lanes, coloured by a value: timelines.
import { coloursOf } from "./heat_map";
import { inkOn, spanColour } from "./palette";
import type { Layout } from "./axes";
import type { Scale } from "./scale";
import type { Panel, Series, Value } from "./types";

export interface SpanBox {
  left: number;
  right: number;
  lane: number;
  // Of the scale of colours, in the mean over its width.
  share: number;
  index: number;
  count: number;
}

const narrow = 1.2; // Pixels: narrower neighbours become one.
const outlinedFrom = 5; // Wider boxes have an outline.
const letter = 6.4;

function shareOf(colours: Scale | null, heat: Value | undefined): number {
  const share = colours?.place(heat) ?? 0.5;
  return Number.isFinite(share) ? share : 0;
}

// So close to each other, and both so narrow, that the eye cannot tell them apart.
function blend(box: SpanBox, next: SpanBox): boolean {
  return (
    next.left - box.right < narrow / 2 &&
    next.left >= box.left &&
    box.right - box.left < narrow &&
    next.right - next.left < narrow
  );
}

function join(box: SpanBox, next: SpanBox): void {
  const [own, other] = [box.right - box.left, next.right - next.left];
  box.share = (box.share * own + next.share * other) / Math.max(own + other, 1e-9);
  box.right = next.right;
  box.count += next.count;
}

// What can be seen of the spans of a series, in the order of the series.
export function boxesOf(series: Series, x: Scale, colours: Scale | null): SpanBox[] {
  const boxes: SpanBox[] = [];
  const last = new Map<number, SpanBox>();
  series.x.forEach((start, index) => {
    const lane = series.y[index];
    const [left, right] = [x.place(start), x.place(series.until?.[index])];
    if (typeof lane !== "number" || !Number.isFinite(left) || !Number.isFinite(right)) return;
    if (right < x.from - 1 || left > x.to + 1) return;
    const share = shareOf(colours, series.heat?.[index]);
    const box = { left, right, lane, share, index, count: 1 };
    const before = last.get(lane);
    if (before && blend(before, box)) {
      join(before, box);
      return;
    }
    last.set(lane, box);
    boxes.push(box);
  });
  return boxes;
}

// The span at a value of x in the lane of a value of y; -1: none.
export function spanAt(series: Series, x: number, y: number): number {
  const lane = Math.round(y);
  if (Math.abs(y - lane) > 0.42) return -1;
  for (let i = 0; i < series.x.length; ++i) {
    const [start, until] = [series.x[i], series.until?.[i]];
    if (series.y[i] !== lane || start == null || until == null) continue;
    if (start <= x && x <= until) return i;
  }
  return -1;
}

// The middle of what is in sight of a span.
export function spanPlace(series: Series, layout: Layout, index: number): { x: number; y: number } {
  const left = Math.max(layout.x.place(series.x[index]), layout.left);
  const right = Math.min(layout.x.place(series.until?.[index]), layout.right);
  const x = left <= right ? (left + right) / 2 : NaN;
  return { x, y: layout.y.place(series.y[index]) };
}

export function Spans(props: { panel: Panel; series: Series; place: { x: Scale; y: Scale } }) {
  const { panel, series, place } = props;
  const height = Math.abs(place.y.place(0.84) - place.y.place(0));
  return (
    <>
      {boxesOf(series, place.x, coloursOf(panel, 0, 1)).map((box) => {
        const width = box.right - box.left;
        const middle = place.y.place(box.lane);
        const name = box.count === 1 ? (series.span_names?.[box.index] ?? "") : "";
        return (
          <>
            <rect
              class={width > outlinedFrom ? "span outlined" : "span"}
              fill={spanColour(box.share)}
              x={box.left}
              y={middle - height / 2}
              width={Math.max(width, 0.3)}
              height={height}
            />
            {name && [...name].length * letter + 2 <= width && height > 10 && (
              <text
                class="span-name"
                style={{ fill: inkOn(0.84 * box.share) }}
                x={(box.left + box.right) / 2}
                y={middle + 4}
              >
                {name}
              </text>
            )}
          </>
        );
      })}
    </>
  );
}
