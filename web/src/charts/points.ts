// Series as places on the screen, thinned to what the eye can tell apart.
import type { Scale } from "./scale";
import type { Series, Value } from "./types";

export interface Spot {
  x: number;
  y: number;
  index: number;
}

// More points than this are thinned.
export const thinnedFrom = 2000;

// Points that follow each other without a gap.
export function runsOf(series: Series, values: Value[], x: Scale, y: Scale): Spot[][] {
  const runs: Spot[][] = [];
  let run: Spot[] | null = null;
  for (let index = 0; index < Math.min(series.x.length, values.length); ++index) {
    const spot = { x: x.place(series.x[index]), y: y.place(values[index]), index };
    if (Number.isFinite(spot.x) && Number.isFinite(spot.y)) {
      if (!run) runs.push((run = []));
      run.push(spot);
    } else {
      run = null;
    }
  }
  return runs;
}

function ordered(run: Spot[]): boolean {
  return run.every((spot, i) => i === 0 || spot.x >= run[i - 1]!.x);
}

// The first, lowest, highest and last point of each column of pixels: the line looks the same.
// What lies out of sight is left out, but for the neighbours of what does not.
export function thinned(run: Spot[], left: number, right: number): Spot[] {
  if (run.length <= thinnedFrom || !ordered(run)) return run;
  const thin: Spot[] = [];
  for (let begin = 0; begin < run.length; ) {
    const column = Math.min(Math.max(Math.floor(run[begin]!.x), Math.floor(left) - 1), right + 1);
    let end = begin;
    let low = begin;
    let high = begin;
    const inColumn = (spot: Spot) =>
      Math.min(Math.max(Math.floor(spot.x), Math.floor(left) - 1), right + 1) === column;
    for (; end < run.length && inColumn(run[end]!); ++end) {
      if (run[end]!.y < run[low]!.y) low = end;
      if (run[end]!.y > run[high]!.y) high = end;
    }
    const kept = [...new Set([begin, low, high, end - 1])].sort((a, b) => a - b);
    for (const index of kept) thin.push(run[index]!);
    begin = end;
  }
  return thin;
}

// Many points are thinned to one for each pixel, very many to one for each four.
export function distinct(spots: Spot[]): Spot[] {
  if (spots.length <= thinnedFrom) return spots;
  const size = spots.length > 10 * thinnedFrom ? 2 : 1;
  const seen = new Set<number>();
  return spots.filter((spot) => {
    const pixel = Math.round(spot.x / size) * 65536 + Math.round(spot.y / size);
    if (seen.has(pixel)) return false;
    seen.add(pixel);
    return true;
  });
}

export function outline(run: Spot[], steps = false): string {
  return run
    .map(({ x, y }, i) => {
      const [px, py] = [x.toFixed(1), y.toFixed(1)];
      return i === 0 ? `M${px} ${py}` : steps ? `H${px}V${py}` : `L${px} ${py}`;
    })
    .join("");
}
