// Sentences about duels.
import { energyText, numberText, percentText, unknown, withSigma } from "../app/quantity";
import type { Choice, Comparison, Duel, Estimate, SideName } from "./types";

export function nameOf(side: SideName): string {
  return side.toUpperCase();
}

// The side that took more energy, where that is certain.
export function dearerSide(comparison: Comparison | undefined): SideName | undefined {
  if (comparison?.verdict === "a_more") return "a";
  if (comparison?.verdict === "b_more") return "b";
  return undefined;
}

// "3.2 times as much energy as", "12 % more energy than"
export function howMuchMore(ratio: number): string {
  if (ratio >= 2) return `${ratio < 9.95 ? ratio.toFixed(1) : ratio.toFixed(0)} times as much energy as`;
  const percent = 100 * (ratio - 1);
  return `${percent.toFixed(percent < 9.95 ? 1 : 0)} % more energy than`;
}

export function comparisonText(comparison: Comparison | undefined): string {
  const dearer = dearerSide(comparison);
  if (dearer && comparison?.ratio)
    return `${nameOf(dearer)} took ${howMuchMore(comparison.ratio)} ${nameOf(dearer === "a" ? "b" : "a")}.`;
  if (comparison?.verdict === "cannot_tell") {
    const difference = withSigma(Math.abs(comparison.difference_joules ?? 0), comparison.sigma_joules, "J");
    return `Cannot tell which took more: they differ by ${difference}, which is within the error of the measurement.`;
  }
  return "The energy of these answers is not known.";
}

export function choiceText(choice: Choice): string {
  return choice === "tie" ? "a tie" : `answer ${nameOf(choice)}`;
}

// The voter's part of the duel in one sentence.
export function voteText(duel: Duel): string {
  const { response, worth, change } = duel.votes;
  if (!response) return "";
  const judged = worth === "yes" ? ", and found it worth the extra energy" : worth === "no" ? ", but not worth the extra energy" : "";
  const changed = change ? ` Knowing everything, you changed to ${choiceText(change)}; both votes are kept.` : "";
  return `You voted for ${choiceText(response)}${judged}.${changed}`;
}

// "1032 (981 to 1090)"
export function withInterval(estimate: Estimate | null, text: (value: number | null) => string): string {
  if (!estimate || estimate.value === null) return unknown;
  if (estimate.low === null || estimate.high === null) return text(estimate.value);
  return `${text(estimate.value)} (${text(estimate.low)} to ${text(estimate.high)})`;
}

export const ratingText = (value: number | null) => (value === null ? unknown : value.toFixed(0));
export const shareText = (value: number | null) => percentText(value, 0);
export const joulesText = (value: number | null) => energyText(value);
export const tokenText = (value: number | null) => (value === null ? unknown : `${numberText(value, "J")}`);
