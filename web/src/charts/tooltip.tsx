import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Tip } from "./hover";

const gap = 14; // Between what one points at and what is said about it.
const most = 12; // Rows.

// Beside the point, on the side with more room, and never beyond the edges of the chart: it would
// make the page wider.
function placeBeside(x: number, own: number, width: number): number {
  const wish = x > width / 2 ? x - gap - own : x + gap;
  return Math.max(0, Math.min(wish, width - own));
}

export function Tooltip({ tip, width }: { tip: Tip; width: number }) {
  const ref = useRef<HTMLDivElement>(null);
  const [own, setOwn] = useState(0);
  useLayoutEffect(() => setOwn(ref.current?.offsetWidth ?? 0), [tip, width]);
  const left = placeBeside(tip.x, own, width);
  return (
    <div class="tip" ref={ref} style={{ left: `${left}px`, top: `${tip.y + gap}px` }}>
      <div class="tip-title">{tip.title}</div>
      {tip.rows.slice(0, most).map((row) => (
        <div class="tip-row">
          <i style={{ background: row.colour }} />
          <span>{row.name}</span>
          <b>{row.value}</b>
          <em>{row.spread}</em>
        </div>
      ))}
      {tip.rows.length > most && <div class="tip-row">and {tip.rows.length - most} more</div>}
    </div>
  );
}
