// Numbers as people read them, in the style of zeus/base/quantity_text.h, which has the rules: a
// blank before the unit, one prefix for a value and its uncertainty, and as many digits as the
// uncertainty leaves meaning to. Both have the same tests.

interface Prefix {
  scale: number;
  text: string;
}

const none: Prefix = { scale: 1, text: "" };
const prefixes: Prefix[] = [
  { scale: 1e-6, text: "µ" },
  { scale: 1e-3, text: "m" },
  none,
  { scale: 1e3, text: "k" },
  { scale: 1e6, text: "M" },
  { scale: 1e9, text: "G" },
];

// Shown where a number is not known.
export const unknown = "–";

function prefixUnlessBelow(plainBelow: number, size: number): Prefix {
  if (size === 0 || !Number.isFinite(size) || (size >= 1 && size < plainBelow)) return none;
  let best = prefixes[0]!;
  for (const prefix of prefixes) if (size >= prefix.scale) best = prefix;
  return best;
}

export function prefixFor(size: number): Prefix {
  return prefixUnlessBelow(1e3, size);
}

const clamp = (value: number, low: number, high: number) => Math.min(Math.max(value, low), high);

// "m/s" would be read as metres, and a bare number has no unit to put a prefix in front of.
const takesPrefix = (unit: string) => unit !== "" && !unit.startsWith("/");

const withUnit = (number: string, prefix: string, unit: string) =>
  unit === "" ? number : `${number} ${prefix}${unit}`;

const isKnown = (sigma: number | null | undefined): sigma is number =>
  typeof sigma === "number" && Number.isFinite(sigma) && sigma > 0;

const isNumber = (value: number | null | undefined): value is number =>
  typeof value === "number" && Number.isFinite(value);

function decimalsFor(sigma: number, most: number): number {
  return clamp(1 - Math.floor(Math.log10(sigma)), 0, most);
}

function threeDigits(value: number): string {
  if (value === 0) return "0.00";
  return value.toFixed(clamp(2 - Math.floor(Math.log10(Math.abs(value))), 0, 9));
}

// "0.698 ± 0.004"
export function fixedWithSigma(value: number, sigma: number, decimals: number): string {
  return `${value.toFixed(decimals)} ± ${sigma.toFixed(decimals)}`;
}

// "812 J", "12.3 kJ"
export function numberText(value: number | null | undefined, unit: string): string {
  if (!isNumber(value)) return unknown;
  const prefix = takesPrefix(unit) ? prefixFor(Math.abs(value)) : none;
  return withUnit(threeDigits(value / prefix.scale), prefix.text, unit);
}

// "708 ± 22 J"; without a known sigma as numberText().
export function withSigma(value: number | null | undefined, sigma: number | null | undefined, unit: string): string {
  if (!isNumber(value)) return unknown;
  if (!isKnown(sigma)) return numberText(value, unit);
  const size = Math.max(Math.abs(value), sigma);
  // From 1000 on, a sigma with more than two digits before the point asks for a prefix.
  const plainBelow = sigma < 99.5 ? 1e4 : 1e3;
  const prefix = takesPrefix(unit) ? prefixUnlessBelow(plainBelow, size) : none;
  const shown = sigma / prefix.scale;
  return withUnit(fixedWithSigma(value / prefix.scale, shown, decimalsFor(shown, 6)), prefix.text, unit);
}

export function energyText(joules: number | null | undefined, sigma?: number | null): string {
  return withSigma(joules, sigma, "J");
}

// "231.4 W" below a kilowatt, "1042 W" from there on, as PowerText().
export function powerText(watts: number | null | undefined, sigma?: number | null): string {
  if (!isNumber(watts)) return unknown;
  if (isKnown(sigma)) return withSigma(watts, sigma, "W");
  return `${watts.toFixed(Math.abs(watts) < 1000 ? 1 : 0)} W`;
}

function timeUnit(seconds: number): { seconds: number; name: string } {
  const size = Math.abs(seconds);
  if (size >= 2 * 3600) return { seconds: 3600, name: "h" };
  if (size >= 3 * 60) return { seconds: 60, name: "min" };
  return { seconds: 1, name: "s" };
}

// "8.40 s", "12.3 min", "4.10 h", with its uncertainty where it is known.
export function timeText(seconds: number | null | undefined, sigma?: number | null): string {
  if (!isNumber(seconds)) return unknown;
  const unit = timeUnit(seconds);
  if (!isKnown(sigma))
    return unit.seconds === 1 ? numberText(seconds, "s") : `${threeDigits(seconds / unit.seconds)} ${unit.name}`;
  if (unit.seconds === 1) return withSigma(seconds, sigma, "s");
  const shown = sigma / unit.seconds;
  return `${fixedWithSigma(seconds / unit.seconds, shown, decimalsFor(shown, 3))} ${unit.name}`;
}

// "12.3 %" for a share of 0.123.
export function percentText(share: number | null | undefined, decimals = 1): string {
  return isNumber(share) ? `${(100 * share).toFixed(decimals)} %` : unknown;
}

// "17.20 ± 0.90 %"; arguments are in per cent.
export function percentWithSigma(percent: number | null | undefined, sigma?: number | null): string {
  if (!isNumber(percent)) return unknown;
  if (!isKnown(sigma)) return `${percent.toFixed(1)} %`;
  return `${fixedWithSigma(percent, sigma, decimalsFor(sigma, 2))} %`;
}

// "-12.30 ± 0.40 %", "+0.0 %"
export function changeWithSigma(percent: number | null | undefined, sigma?: number | null): string {
  if (!isNumber(percent)) return unknown;
  const change = percent + 0; // Turns -0 into 0, which has no minus.
  return (change >= 0 ? "+" : "") + percentWithSigma(change, sigma);
}
