// One answer, and who gave it once that is known.
import { numberText, timeText } from "../app/quantity";
import type { Duel, SideName } from "./types";
import { nameOf } from "./words";

export interface AnswerPanelProps {
  side: SideName;
  text: string;
  arriving: boolean;
  duel: Duel;
}

export function AnswerPanel({ side, text, arriving, duel }: AnswerPanelProps) {
  const identity = duel.answers?.[side];
  const chosen = duel.votes.response === side;
  const name = `answer-${side}`;
  return (
    <article class={`answer ${chosen ? "chosen" : ""}`} aria-labelledby={name}>
      <header>
        <h2 id={name}>
          <span class="side">{nameOf(side)}</span>
          {identity ? identity.model : "Anonymous"}
        </h2>
        {chosen && <span class="mark">your choice</span>}
      </header>
      {/* Screen readers wait until the answer is complete. */}
      <div class="text" role="region" aria-label={`Answer ${nameOf(side)}`} tabIndex={0} aria-live="polite" aria-busy={arriving}>
        {text}
        {arriving && <span class="caret" aria-hidden="true" />}
        {!arriving && !text && <span class="faint">The text is not kept.</span>}
      </div>
      {identity && (
        <dl class="answer-facts">
          <div>
            <dt>Output</dt>
            <dd>{identity.output_tokens === null ? "–" : `${identity.output_tokens.toFixed(0)} tokens`}</dd>
          </div>
          <div>
            <dt>Time</dt>
            <dd>{timeText(identity.duration_seconds)}</dd>
          </div>
          <div>
            <dt>Energy per token</dt>
            <dd>{numberText(identity.joules_per_output_token, "J")}</dd>
          </div>
        </dl>
      )}
      {identity?.absent_reason && <p class="small">Energy unknown: {identity.absent_reason}.</p>}
    </article>
  );
}
