// A duel: prompt, two anonymous answers side by side, vote, energy, identities.
import { useEffect, useRef, useState } from "preact/hooks";
import { useFetched } from "../app/api";
import { Failure, StatusLine, Trouble } from "../app/parts";
import { energyText } from "../app/quantity";
import { go, linkTo } from "../app/router";
import type { ViewProps } from "../app/views";
import { AnswerPanel } from "./answer_panel";
import "./colosseum.css";
import { PowerFigure } from "./power_figure";
import type { Choice, Duel, SideName } from "./types";
import { sides } from "./types";
import { useDuel } from "./use_duel";
import type { DuelActions, DuelState } from "./use_duel";
import { choiceText, comparisonText, nameOf, voteText } from "./words";

interface PromptProps {
  busy: boolean;
  begin: (prompt: string, prefer: string) => void;
}

function PromptForm({ busy, begin }: PromptProps) {
  const [prompt, setPrompt] = useState("");
  const [prefer, setPrefer] = useState("");
  const models = useFetched<{ models: string[] }>("zeus/models", 10);
  const known = models.value?.models ?? [];
  const send = () => {
    if (!busy && prompt.trim()) begin(prompt, known.includes(prefer) ? prefer : "");
  };
  return (
    <form
      class="prompt"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <label class="ask">
        <span>Your prompt</span>
        <textarea
          name="prompt"
          rows={3}
          value={prompt}
          placeholder="Ask both models the same thing"
          onInput={(event) => setPrompt(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            send();
          }}
        />
      </label>
      <div class="row">
        <label class="prefer">
          <span>Who fights</span>
          <select name="prefer" value={prefer} onChange={(event) => setPrefer(event.currentTarget.value)}>
            <option value="">Two random models</option>
            {known.map((model) => (
              <option value={model}>One is {model}</option>
            ))}
          </select>
        </label>
        <button class="main fight" type="submit" disabled={busy || !prompt.trim()}>
          Fight!
        </button>
      </div>
      {models.error && <StatusLine tone="warn">{models.error.message}</StatusLine>}
    </form>
  );
}

function Rules() {
  return (
    <ol class="rules">
      <li>Two language models answer your prompt. You do not know which ones.</li>
      <li>Vote for the better answer.</li>
      <li>Then see what each took: was the better one worth its energy?</li>
      <li>Only then you learn who they were.</li>
    </ol>
  );
}

// The heading of what is asked next gets the focus, so that keyboard and screen reader are there.
function useFocusOn(what: string) {
  const ref = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (what) ref.current?.focus({ preventScroll: true });
  }, [what]);
  return ref;
}

function stepOf({ duel, complete }: DuelState): string {
  if (!duel) return "";
  if (duel.stage === "answering" || (duel.stage === "voting" && !complete)) return "answering";
  return duel.stage;
}

const choices: { choice: Choice; text: string }[] = [
  { choice: "a", text: "A is better" },
  { choice: "tie", text: "It is a tie" },
  { choice: "b", text: "B is better" },
];

function Vote({ busy, vote }: { busy: boolean; vote: (choice: Choice) => void }) {
  const heading = useFocusOn("vote");
  return (
    <section class="decision" aria-labelledby="decision">
      <h2 id="decision" ref={heading} tabIndex={-1}>
        Which answer is better?
      </h2>
      <div class="votes">
        {choices.map(({ choice, text }) => (
          <button class="main" type="button" disabled={busy} onClick={() => vote(choice)}>
            {text}
          </button>
        ))}
      </div>
    </section>
  );
}

function Energies({ duel }: { duel: Duel }) {
  const energies = sides.map((side) => duel.energy?.[side].energy_joules ?? 0);
  const most = Math.max(...energies, 1e-12);
  return (
    <div class="energies">
      {sides.map((side, i) => {
        const energy = duel.energy?.[side];
        return (
          <div class="energy">
            <b>{nameOf(side)}</b>
            <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
              <rect class={side} width={(100 * energies[i]!) / most} height="10" />
            </svg>
            <span>{energyText(energy?.energy_joules, energy?.sigma_joules)}</span>
          </div>
        );
      })}
    </div>
  );
}

function Weigh({ duel, busy, judge }: { duel: Duel; busy: boolean; judge: (worth: boolean) => void }) {
  const preferred = duel.votes.response as SideName;
  return (
    <div class="weigh">
      <h3>Was answer {nameOf(preferred)} worth the extra energy?</h3>
      <div class="votes">
        <button class="main" type="button" disabled={busy} onClick={() => judge(true)}>
          Yes, worth it
        </button>
        <button class="main" type="button" disabled={busy} onClick={() => judge(false)}>
          No, not worth it
        </button>
      </div>
    </div>
  );
}

function Change({ duel, busy, change }: { duel: Duel; busy: boolean; change: (choice: Choice) => void }) {
  const over = duel.change_until !== undefined && Date.parse(duel.change_until) < Date.now();
  if (duel.votes.change || over) return null;
  return (
    <div class="change">
      <span>Knowing all this, your vote would be</span>
      {choices
        .filter(({ choice }) => choice !== duel.votes.response)
        .map(({ choice }) => (
          <button type="button" disabled={busy} onClick={() => change(choice)}>
            {choiceText(choice)}
          </button>
        ))}
    </div>
  );
}

function Result({ state, actions, again }: { state: DuelState; actions: DuelActions; again: () => void }) {
  const duel = state.duel!;
  const heading = useFocusOn(duel.stage);
  const weighing = duel.stage === "weighing";
  const provisional = sides.some((side) => duel.energy?.[side].energy_joules != null && !duel.energy[side].final);
  return (
    <section class="decision" aria-labelledby="result">
      <h2 id="result" ref={heading} tabIndex={-1}>
        {comparisonText(duel.comparison)}
      </h2>
      <Energies duel={duel} />
      <p class="small">
        ± is one standard deviation of the measurement.{provisional ? " The sensors had not shown all of it yet." : ""}
      </p>
      {weighing ? (
        <Weigh duel={duel} busy={state.busy} judge={actions.judge} />
      ) : (
        <>
          <p>{voteText(duel)}</p>
          <Change duel={duel} busy={state.busy} change={actions.change} />
          <div class="row">
            <button class="main" type="button" onClick={again}>
              Another duel
            </button>
            <a href={linkTo("leaderboard")}>Leaderboard</a>
          </div>
        </>
      )}
      {duel.power_watts && <PowerFigure power={duel.power_watts} />}
    </section>
  );
}

const spoken: Record<string, string> = {
  answering: "Both answers are arriving.",
  voting: "Both answers are complete: vote.",
  weighing: "The energy of both is known.",
  revealed: "The models are revealed.",
};

function Progress({ state, step }: { state: DuelState; step: string }) {
  if (step === "failed" || step === "expired")
    return (
      <Trouble title={step === "failed" ? "This duel has failed" : "This duel has expired"}>
        <p>
          {step === "failed"
            ? "An answer did not come, so there is nothing to compare: start another duel."
            : "Votes are awaited for 10 minutes: start another duel."}
        </p>
      </Trouble>
    );
  return (
    <StatusLine tone={step === "answering" ? "busy" : "good"} spoken>
      {spoken[step]}
      {state.interrupted && ` The connection is interrupted: ${state.interrupted}.`}
    </StatusLine>
  );
}

export function DuelPage({ query }: ViewProps) {
  const [state, actions] = useDuel(query.get("duel") ?? "");
  const { duel } = state;
  const step = stepOf(state);
  const begin = async (prompt: string, prefer: string) => {
    const id = await actions.begin(prompt, prefer);
    // The address names the duel, so that a reload goes on with it.
    if (id) history.replaceState(null, "", linkTo("duel", { duel: id }));
  };
  const again = () => {
    actions.forget();
    go(linkTo("duel"));
    document.querySelector<HTMLTextAreaElement>("textarea[name=prompt]")?.focus();
  };
  return (
    <div class="colosseum">
      <h1>Colosseum</h1>
      <PromptForm busy={state.busy || step === "answering"} begin={(prompt, prefer) => void begin(prompt, prefer)} />
      {state.error && <Failure error={state.error} />}
      {!duel && !state.error && <Rules />}
      {duel && <Progress state={state} step={step} />}
      {duel && (
        <div class="answers">
          {sides.map((side) => (
            <AnswerPanel
              side={side}
              text={state.texts[side] || duel.answers?.[side].text || ""}
              arriving={step === "answering"}
              duel={duel}
            />
          ))}
        </div>
      )}
      {step === "voting" && <Vote busy={state.busy} vote={actions.vote} />}
      {(step === "weighing" || step === "revealed") && <Result state={state} actions={actions} again={again} />}
    </div>
  );
}
