// Numbers as people read them.

const suffixes: [number, string, number][] = [
  [1e12, "T", 1e12],
  [1e9, "G", 1e9],
  [1e6, "M", 1e6],
  [1e4, "k", 1e3],
];

const raised = "⁰¹²³⁴⁵⁶⁷⁸⁹";

function withoutZeros(text: string): string {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

// "0.05", "35k", "2.5M": short, for an axis whose ticks lie `step` apart.
export function tickLabel(value: number, step: number): string {
  const suffix = suffixes.find(([from]) => Math.abs(value) >= from * (1 - 1e-9));
  const unit = suffix ? suffix[2] : 1;
  const decimals = Math.min(Math.max(Math.ceil(-Math.log10(step / unit) - 1e-9), 0), 12);
  return withoutZeros((value / unit).toFixed(decimals)).replace("-", "−") + (suffix?.[1] ?? "");
}

export function powerOfTen(exponent: number): string {
  return "10" + [...String(exponent)].map((c) => (c === "-" ? "⁻" : raised[Number(c)])).join("");
}

// For a tick of a logarithmic axis.
export function logLabel(value: number): string {
  if (value >= 1e-3 && value < 1e15) return tickLabel(value, value);
  const exponent = Math.floor(Math.log10(value) + 1e-9);
  const leading = Math.round(value / 10 ** exponent);
  return leading === 1 ? powerOfTen(exponent) : `${leading}×${powerOfTen(exponent)}`;
}

// With four significant digits, for tooltips.
export function formatNumber(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e9))
    return value.toExponential(3).replace(/\.?0+e/, "e").replace("-", "−");
  if (Number.isInteger(value)) return value.toLocaleString("en").replace("-", "−");
  const decimals = Math.max(0, 3 - Math.floor(Math.log10(size)));
  return withoutZeros(value.toFixed(Math.min(decimals, 8)))
    .replace(/\B(?=(\d{3})+(?=\.|$))(?<!\.\d*)/g, ",")
    .replace("-", "−");
}
