import assert from "node:assert/strict";
import { test } from "node:test";
import type { Comparison, Duel, Estimate } from "../src/colosseum/types";
import { comparisonText, dearerSide, howMuchMore, ratingText, voteText, withInterval } from "../src/colosseum/words";

const comparison = (verdict: Comparison["verdict"], ratio = 1): Comparison => ({
  verdict,
  ratio,
  difference_joules: -1.25,
  sigma_joules: 0.8,
});

test("more is told in times from twice on, and in per cent below", () => {
  assert.equal(howMuchMore(3.24), "3.2 times as much energy as");
  assert.equal(howMuchMore(24.3), "24 times as much energy as");
  assert.equal(howMuchMore(2), "2.0 times as much energy as");
  assert.equal(howMuchMore(1.124), "12 % more energy than");
  assert.equal(howMuchMore(1.034), "3.4 % more energy than");
  assert.equal(comparisonText(comparison("b_more", 3.2)), "B took 3.2 times as much energy as A.");
  assert.equal(comparisonText(comparison("a_more", 1.5)), "A took 50 % more energy than B.");
});

test("a difference within two sigma is none", () => {
  assert.match(comparisonText(comparison("cannot_tell")), /^Cannot tell .* 1\.25 ± 0\.80 J/);
  assert.equal(dearerSide(comparison("cannot_tell")), undefined);
  assert.equal(comparisonText({ verdict: "unknown" }), "The energy of these answers is not known.");
  assert.equal(comparisonText(undefined), "The energy of these answers is not known.");
});

test("the votes are one sentence", () => {
  const duel = (votes: Duel["votes"]): Duel => ({ id: "x", created_at: "", stage: "revealed", votes });
  assert.equal(voteText(duel({})), "");
  assert.equal(voteText(duel({ response: "tie" })), "You voted for a tie.");
  assert.equal(voteText(duel({ response: "b", worth: "no" })), "You voted for answer B, but not worth the extra energy.");
  assert.match(voteText(duel({ response: "b", worth: "yes", change: "a" })), /worth the extra energy\. .*changed to answer A; both votes are kept\.$/);
});

test("estimates have their intervals where there are any", () => {
  const estimate = (low: number | null): Estimate => ({ value: 1032.4, low, high: 1090 });
  assert.equal(withInterval(estimate(981), ratingText), "1032 (981 to 1090)");
  assert.equal(withInterval(estimate(null), ratingText), "1032");
  assert.equal(withInterval(null, ratingText), "–");
});
