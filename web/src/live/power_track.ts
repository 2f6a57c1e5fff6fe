// The power of one device over time in bounded memory, as zeus/live/power_archive.h keeps it on the
// server: every level is a ring of steps. Live readings fill the newest steps; the server's history
// replaces them with what it knows better, and what nobody knows stays empty.

export interface Level {
  step: number; // Seconds.
  size: number;
}

// Readings as they come, then the steps of GET /v1/history.
export const levels: Level[] = [
  { step: 0.1, size: 900 },
  { step: 1, size: 660 },
  { step: 10, size: 740 },
  { step: 60, size: 2900 },
];

class Ring {
  readonly mean: Float32Array;
  readonly low: Float32Array;
  readonly high: Float32Array;
  readonly idle: Float32Array;
  private readonly counts: Uint16Array;
  newest = -1; // Number of the newest step; steps count from the origin of the server's clock.

  constructor(readonly level: Level) {
    const make = () => new Float32Array(level.size).fill(NaN);
    [this.mean, this.low, this.high, this.idle] = [make(), make(), make(), make()];
    this.counts = new Uint16Array(level.size);
  }

  private open(step: number): number {
    const { size } = this.level;
    for (let empty = Math.max(this.newest + 1, step - size + 1); empty <= step; ++empty) {
      const place = empty % size;
      this.mean[place] = this.low[place] = this.high[place] = this.idle[place] = NaN;
      this.counts[place] = 0;
    }
    this.newest = Math.max(this.newest, step);
    return step % size;
  }

  private holds(step: number): boolean {
    return step >= 0 && step > this.newest - this.level.size;
  }

  add(step: number, watts: number): void {
    if (!this.holds(step)) return;
    const place = this.open(step);
    const before = this.counts[place]!;
    // A step that the server has told is not mixed with single readings.
    if (before === 0xffff) return;
    const count = Math.min(before + 1, 0xfffe);
    this.counts[place] = count;
    this.mean[place] = before === 0 ? watts : this.mean[place]! + (watts - this.mean[place]!) / count;
    this.low[place] = before === 0 ? watts : Math.min(this.low[place]!, watts);
    this.high[place] = before === 0 ? watts : Math.max(this.high[place]!, watts);
  }

  // Takes what the server knows; null is an empty step, which live readings may still fill.
  set(step: number, mean: number | null, low: number, high: number, idle: number): void {
    if (!this.holds(step)) return;
    if (mean === null) {
      if (step > this.newest) this.open(step);
      return;
    }
    const place = this.open(step);
    this.counts[place] = 0xffff;
    this.mean[place] = mean;
    this.low[place] = low;
    this.high[place] = high;
    this.idle[place] = idle;
  }

  at(step: number): number {
    return this.holds(step) && step <= this.newest ? step % this.level.size : -1;
  }
}

export class PowerTrack {
  readonly rings = levels.map((level) => new Ring(level));

  addReading(seconds: number, watts: number): void {
    if (!Number.isFinite(watts)) return;
    for (const ring of this.rings) ring.add(Math.floor(seconds / ring.level.step + 1e-6), watts);
  }

  // Steps from `since` on, as an answer of the history has them.
  addHistory(step: number, since: number, series: {
    mean: (number | null)[];
    low?: (number | null)[] | undefined;
    high?: (number | null)[] | undefined;
    idle?: (number | null)[] | undefined;
  }): void {
    const ring = this.rings.find(({ level }) => level.step === step);
    if (!ring) return;
    const first = Math.round(since / step);
    series.mean.forEach((mean, i) => {
      // The step that has not ended yet is for live readings.
      if (i === series.mean.length - 1) return;
      ring.set(first + i, mean, series.low?.[i] ?? mean ?? NaN, series.high?.[i] ?? mean ?? NaN, series.idle?.[i] ?? NaN);
    });
  }

  // Mean power and power without work over [from, to), in watts times seconds, and the seconds that
  // are known, by steps of this level.
  sum(levelIndex: number, from: number, to: number): { energy: number; idle: number; idleSeconds: number; seconds: number } {
    const ring = this.rings[levelIndex]!;
    const { step } = ring.level;
    const all = { energy: 0, idle: 0, idleSeconds: 0, seconds: 0 };
    for (let at = Math.ceil(from / step); at < to / step; ++at) {
      const place = ring.at(at);
      if (place < 0) continue;
      const mean = ring.mean[place]!;
      if (Number.isNaN(mean)) continue;
      all.energy += mean * step;
      all.seconds += step;
      const idle = ring.idle[place]!;
      if (Number.isNaN(idle) || !(mean > 0)) continue;
      all.idle += idle * step;
      // The lowest second of a step in which there was nothing to do is one of those.
      const low = ring.low[place]!;
      all.idleSeconds += Math.min(step, (idle / (low > 0 ? low : mean)) * step);
    }
    return all;
  }
}

// The finest level whose ring covers so many seconds.
export function levelFor(seconds: number): number {
  const found = levels.findIndex(({ step, size }) => step * size >= seconds);
  return found < 0 ? levels.length - 1 : found;
}
