// Power over time on a canvas: with ten readings a second from eight devices an SVG would be rebuilt
// all the time. It is drawn when something new has come, at most five times a second, and not at all
// while nobody sees it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { linearTicks } from "../charts/scale";
import { powerText } from "../app/quantity";
import { clockText } from "../app/time";
import type { NodeSource } from "./node_source";
import { levelFor } from "./power_track";

export interface Line {
  device: string;
  name: string;
  colour: string; // The name of a colour of the page: "other-0".
}

export interface PowerChartProps {
  source: NodeSource;
  lines: Line[];
  seconds: number; // How far back.
  limit?: number | undefined; // Watts, drawn as a guide.
}

const room = { left: 48, right: 12, top: 10, bottom: 24 };
const shortestPause = 190; // Milliseconds: a minute then moves by four pixels, and ten paintings a second would cost twice as much.
const shortestSpan = 60;
const flattest = 0.4; // Pixels: what differs by less is drawn as level.
const timeSteps = [1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200];
const tickClock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const tickSeconds = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });

interface Frame {
  width: number;
  height: number;
  from: number; // Server seconds at the left edge.
  to: number;
  top: number; // Watts at the upper edge.
  level: number;
}

function colourOf(style: CSSStyleDeclaration, name: string): string {
  return style.getPropertyValue(`--${name}`).trim() || "#888";
}

class Painter {
  private readonly context: CanvasRenderingContext2D;
  private top = 0;

  constructor(private readonly canvas: HTMLCanvasElement) {
    this.context = canvas.getContext("2d")!;
  }

  paint(props: PowerChartProps, hidden: Set<string>, cursor: number | null): Frame | undefined {
    const { canvas, context } = this;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (width < 80 || height < 60) return undefined;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const style = getComputedStyle(canvas);
    const shown = props.lines.filter(({ device }) => !hidden.has(device));
    const to = props.source.now();
    const frame: Frame = { width, height, from: to - props.seconds, to, top: 1, level: levelFor(props.seconds) };
    // What lies before anything was recorded is not worth most of the picture.
    const { earliest } = props.source;
    if (earliest > 0) frame.from = Math.max(frame.from, Math.min(earliest, to - shortestSpan));
    frame.top = this.highest(props, shown, frame);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = `11px ${style.fontFamily}`;
    this.paintGaps(props, shown, frame, style);
    this.paintGrid(props, frame, style);
    context.save();
    context.beginPath();
    context.rect(room.left, 0, width - room.left - room.right, height - room.bottom + 1);
    context.clip();
    for (const line of shown) this.paintLine(props.source, line, frame, style, shown.length === 1);
    context.restore();
    if (cursor !== null) this.paintCursor(frame, cursor, style);
    return frame;
  }

  static x(frame: Frame, seconds: number): number {
    const share = (seconds - frame.from) / (frame.to - frame.from);
    return room.left + share * (frame.width - room.left - room.right);
  }
  static y(frame: Frame, watts: number): number {
    return frame.height - room.bottom - (watts / frame.top) * (frame.height - room.bottom - room.top);
  }
  static secondsAt(frame: Frame, x: number): number {
    return frame.from + ((x - room.left) / (frame.width - room.left - room.right)) * (frame.to - frame.from);
  }

  // A round number above everything. It falls only when much room is free: an axis that jumps makes
  // one see changes that there are none of.
  private highest(props: PowerChartProps, shown: Line[], frame: Frame): number {
    let most = props.limit && shown.length === 1 ? props.limit : 10;
    for (const { device } of shown) {
      const ring = props.source.track(device).rings[frame.level]!;
      const { step } = ring.level;
      for (let at = Math.floor(frame.from / step); at <= frame.to / step; ++at) {
        const place = ring.at(at);
        if (place >= 0 && ring.high[place]! > most) most = ring.high[place]!;
      }
    }
    const wanted = most * 1.05;
    if (wanted > this.top || wanted < 0.6 * this.top) {
      const ticks = linearTicks(0, wanted, 4);
      const step = (ticks[1]?.value ?? wanted) - (ticks[0]?.value ?? 0);
      this.top = Math.ceil(wanted / step) * step;
    }
    return this.top;
  }

  private paintGrid(props: PowerChartProps, frame: Frame, style: CSSStyleDeclaration): void {
    const { context } = this;
    const [rule, faint] = [colourOf(style, "rule"), colourOf(style, "faint")];
    context.lineWidth = 1;
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const { value, label } of linearTicks(0, frame.top, frame.height < 160 ? 2 : 4)) {
      const y = Math.round(Painter.y(frame, value)) + 0.5;
      context.strokeStyle = rule;
      context.beginPath();
      context.moveTo(room.left, y);
      context.lineTo(frame.width - room.right, y);
      context.stroke();
      context.fillStyle = faint;
      context.fillText(`${label} W`, room.left - 6, y);
    }
    const places = Math.max(2, Math.floor((frame.width - room.left) / 110));
    const step = timeSteps.find((one) => (frame.to - frame.from) / one <= places) ?? 86400;
    // Ticks stand on round times of the reader's day, not of the server's clock.
    const zone = new Date().getTimezoneOffset() * 60;
    const offset = props.source.wallOffset;
    const first = Math.ceil((frame.from + offset - zone) / step) * step + zone - offset;
    context.textAlign = "center";
    context.textBaseline = "top";
    const format = step < 60 ? tickSeconds : tickClock;
    for (let at = first; at <= frame.to; at += step) {
      const x = Math.round(Painter.x(frame, at)) + 0.5;
      context.strokeStyle = rule;
      context.beginPath();
      context.moveTo(x, frame.height - room.bottom);
      context.lineTo(x, frame.height - room.bottom + 4);
      context.stroke();
      const label = format.format(new Date((at + offset) * 1000));
      const half = context.measureText(label).width / 2;
      if (x < half || x > frame.width - half) continue;
      context.fillStyle = faint;
      context.fillText(label, x, frame.height - room.bottom + 7);
    }
    if (props.limit && frame.top >= props.limit) {
      const y = Math.round(Painter.y(frame, props.limit)) + 0.5;
      context.strokeStyle = faint;
      context.setLineDash([5, 4]);
      context.beginPath();
      context.moveTo(room.left, y);
      context.lineTo(frame.width - room.right, y);
      context.stroke();
      context.setLineDash([]);
    }
  }

  // Times of which no shown device tells anything.
  private paintGaps(props: PowerChartProps, shown: Line[], frame: Frame, style: CSSStyleDeclaration): void {
    if (shown.length === 0) return;
    const { context } = this;
    const rings = shown.map(({ device }) => props.source.track(device).rings[frame.level]!);
    const step = rings[0]!.level.step;
    // Readings come as often as they were asked for: what lies between two of them is no gap.
    const shortest = Math.max(2 * step, 2.5);
    const known = (at: number) =>
      rings.some((ring) => {
        const place = ring.at(at);
        return place >= 0 && !Number.isNaN(ring.mean[place]!);
      });
    context.fillStyle = colourOf(style, "absent");
    let since: number | undefined;
    const first = Math.floor(frame.from / step);
    const last = Math.floor(frame.to / step);
    for (let at = first; at <= last + 1; ++at) {
      if (at <= last && !known(at)) {
        since ??= at * step;
        continue;
      }
      if (since === undefined) continue;
      const until = Math.min(at * step, frame.to);
      if (until - since >= shortest) {
        const left = Math.max(Painter.x(frame, since), room.left);
        context.fillRect(left, room.top, Painter.x(frame, until) - left, frame.height - room.bottom - room.top);
      }
      since = undefined;
    }
  }

  private paintLine(source: NodeSource, line: Line, frame: Frame, style: CSSStyleDeclaration, alone: boolean): void {
    const { context } = this;
    const ring = source.track(line.device).rings[frame.level]!;
    const { step } = ring.level;
    const first = Math.floor(frame.from / step) - 1;
    const last = Math.min(Math.floor(frame.to / step), ring.newest);
    // A reading stands for the time up to the next one; a line is broken where one is missing.
    const patience = Math.max(2.5 / step, 2);
    const colour = colourOf(style, line.colour);
    const xOf = (at: number) => Painter.x(frame, (at + 0.5) * step);
    if (alone && step >= 10) {
      context.fillStyle = colour;
      context.globalAlpha = 0.18;
      for (let at = first; at <= last; ++at) {
        const place = ring.at(at);
        if (place < 0 || Number.isNaN(ring.mean[place]!)) continue;
        const [top, bottom] = [Painter.y(frame, ring.high[place]!), Painter.y(frame, ring.low[place]!)];
        const [left, right] = [Painter.x(frame, at * step), Painter.x(frame, (at + 1) * step)];
        context.fillRect(left, top, Math.max(right - left, 1), Math.max(bottom - top, 1));
      }
      context.globalAlpha = 1;
    }
    context.strokeStyle = colour;
    context.lineWidth = 1.6;
    context.lineJoin = "bevel";
    context.beginPath();
    // Strokes are what a page of many readings costs: a level stretch is one.
    let before = -Infinity;
    let level = 0;
    let flat: { x: number } | undefined;
    for (let at = first; at <= last; ++at) {
      const place = ring.at(at);
      if (place < 0) continue;
      const watts = ring.mean[place]!;
      if (Number.isNaN(watts)) continue;
      const [x, y] = [xOf(at), Painter.y(frame, watts)];
      if (at - before > patience) {
        if (flat) context.lineTo(flat.x, level);
        flat = undefined;
        context.moveTo(x - 0.5, y);
        context.lineTo(x, y);
        level = y;
      } else if (Math.abs(y - level) < flattest) flat = { x };
      else {
        if (flat) context.lineTo(flat.x, level);
        flat = undefined;
        context.lineTo(x, y);
        level = y;
      }
      before = at;
    }
    if (flat) context.lineTo(flat.x, level);
    context.stroke();
  }

  private paintCursor(frame: Frame, cursor: number, style: CSSStyleDeclaration): void {
    const { context } = this;
    const x = Math.round(Painter.x(frame, cursor)) + 0.5;
    if (x < room.left || x > frame.width - room.right) return;
    context.strokeStyle = colourOf(style, "frame");
    context.beginPath();
    context.moveTo(x, room.top);
    context.lineTo(x, frame.height - room.bottom);
    context.stroke();
  }
}

// The power of each line at a moment; NaN where nothing is known.
function valuesAt(props: PowerChartProps, frame: Frame, seconds: number) {
  return props.lines.map((line) => {
    const ring = props.source.track(line.device).rings[frame.level]!;
    const middle = Math.floor(seconds / ring.level.step);
    const reach = Math.ceil(1.5 / ring.level.step);
    for (let off = 0; off <= reach; ++off)
      for (const at of [middle - off, middle + off]) {
        const place = ring.at(at);
        if (place >= 0 && !Number.isNaN(ring.mean[place]!)) return { line, watts: ring.mean[place]! };
        if (off === 0) break;
      }
    return { line, watts: NaN };
  });
}

export function PowerChart(props: PowerChartProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const frame = useRef<Frame | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const [hidden, setHidden] = useState<Set<string>>(() => new Set());
  const [cursor, setCursor] = useState<number | null>(null); // Seconds before now.
  const shown = useRef({ hidden, cursor });
  shown.current = { hidden, cursor };
  const repaint = useRef(() => {});

  useEffect(() => {
    const painter = new Painter(canvas.current!);
    let [asked, seen, last, timer] = [0, true, 0, 0];
    const paint = () => {
      asked = 0;
      last = performance.now();
      const { hidden: without, cursor: at } = shown.current;
      const now = latest.current.source.now();
      frame.current = painter.paint(latest.current, without, at === null ? null : now - at) ?? frame.current;
    };
    const ask = () => {
      if (asked || !seen || document.hidden) return;
      const pause = shortestPause - (performance.now() - last);
      clearTimeout(timer);
      if (pause > 0) timer = window.setTimeout(ask, pause);
      else asked = requestAnimationFrame(paint);
    };
    repaint.current = ask;
    const unfollow = latest.current.source.follow(ask);
    const watcher = new IntersectionObserver(([entry]) => {
      seen = entry?.isIntersecting ?? true;
      ask();
    });
    watcher.observe(canvas.current!);
    const sizes = new ResizeObserver(ask);
    sizes.observe(canvas.current!);
    const theme = new MutationObserver(ask);
    theme.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", ask);
    document.addEventListener("visibilitychange", ask);
    // A server that is silent makes a gap that grows.
    const silence = window.setInterval(ask, 1000);
    return () => {
      unfollow();
      watcher.disconnect();
      sizes.disconnect();
      theme.disconnect();
      scheme.removeEventListener("change", ask);
      document.removeEventListener("visibilitychange", ask);
      clearInterval(silence);
      clearTimeout(timer);
      cancelAnimationFrame(asked);
    };
  }, [props.source]);
  useEffect(() => repaint.current(), [hidden, cursor, props.seconds, props.lines]);

  const now = props.source.now();
  const values = useMemo(
    () => (cursor === null || !frame.current ? [] : valuesAt(props, frame.current, now - cursor)),
    [cursor, now, props],
  );
  const when = cursor === null ? "" : clockText(now - cursor + props.source.wallOffset);
  const point = (event: PointerEvent) => {
    if (!frame.current || !canvas.current) return;
    const x = event.clientX - canvas.current.getBoundingClientRect().left;
    const at = Painter.secondsAt(frame.current, x);
    const before = props.source.now() - at;
    setCursor(before >= 0 && at >= frame.current.from ? before : null);
  };
  const step = (event: KeyboardEvent) => {
    const span = frame.current ? frame.current.to - frame.current.from : props.seconds;
    const width = span / 60;
    const moves: Record<string, number> = { ArrowLeft: width, ArrowRight: -width, Home: Infinity, End: -Infinity };
    const move = moves[event.key];
    if (event.key === "Escape") setCursor(null);
    if (move === undefined) return;
    event.preventDefault();
    setCursor(Math.min(Math.max((cursor ?? 0) + move, 0), span));
  };
  const spoken = values
    .filter(({ line }) => !hidden.has(line.device))
    .map(({ line, watts }) => `${line.name} ${Number.isNaN(watts) ? "not known" : powerText(watts)}`)
    .join(", ");
  return (
    <div class="power-chart">
      <canvas
        ref={canvas}
        tabIndex={0}
        role="img"
        aria-label="Power over time. The arrow keys walk through it."
        onPointerMove={point}
        onPointerDown={point}
        onPointerLeave={() => setCursor(null)}
        onKeyDown={step}
        onBlur={() => setCursor(null)}
      />
      <div class="spoken" aria-live="polite">
        {cursor !== null && `${when}: ${spoken}`}
      </div>
      <div class="legend live" role="group" aria-label="Devices in the chart">
        {props.lines.map((line, i) => (
          <button
            type="button"
            aria-pressed={!hidden.has(line.device)}
            onClick={() => {
              const next = new Set(hidden);
              if (!next.delete(line.device)) next.add(line.device);
              setHidden(next);
            }}
          >
            <i class="swatch" style={{ background: `var(--${line.colour})` }} aria-hidden="true" />
            <span>
              {line.name}
              {cursor !== null && values[i] && <b> {powerText(values[i].watts)}</b>}
            </span>
          </button>
        ))}
        <span class="at">{when}</span>
      </div>
    </div>
  );
}
