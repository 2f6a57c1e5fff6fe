// The parts that views are made of.
import type { ComponentChildren } from "preact";
import type { ApiError, Fetched } from "./api";
import { unknown, withSigma } from "./quantity";
import { agoText, exactText, toDate } from "./time";

export interface CardProps {
  title: ComponentChildren;
  aside?: ComponentChildren; // At the right of the title.
  label?: string; // Names the card where the title is more than words.
  children?: ComponentChildren;
}

export function Card({ title, aside, label, children }: CardProps) {
  return (
    <section class="card" {...(label ? { "aria-label": label } : {})}>
      <header>
        <h2>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

export interface FigureNumberProps {
  label: string;
  value?: number | null | undefined;
  sigma?: number | null | undefined;
  unit?: string;
  text?: string; // Instead of value and unit.
  note?: ComponentChildren;
}

// A number that one sees from afar, with its ± smaller beside it.
export function FigureNumber({ label, value, sigma, unit = "", text, note }: FigureNumberProps) {
  const whole = text ?? withSigma(value, sigma, unit);
  const parts = /^(\S+) ± (\S+)(?: (.*))?$/.exec(whole);
  return (
    <div class="number-box">
      <dt>{label}</dt>
      <dd>
        {parts ? (
          <>
            <b>{parts[1]}</b> <i>± {parts[2]}</i> <span>{parts[3]}</span>
          </>
        ) : (
          <b class={whole === unknown ? "faint" : ""}>{whole}</b>
        )}
        {note && <small>{note}</small>}
      </dd>
    </div>
  );
}

export function Numbers({ children }: { children: ComponentChildren }) {
  return <dl class="numbers">{children}</dl>;
}

export type Tone = "good" | "busy" | "warn" | "bad" | "off";

// One sentence with a mark; `spoken` ones are read out when they change.
export function StatusLine({ tone, spoken, children }: { tone: Tone; spoken?: boolean; children: ComponentChildren }) {
  return (
    <p class={`status ${tone}`} {...(spoken ? { role: "status" } : {})}>
      {children}
    </p>
  );
}

// What is wrong, and what helps.
export function Trouble({ title, fix, children }: { title: string; fix?: string; children?: ComponentChildren }) {
  return (
    <div class="trouble" role="alert">
      <b>{title}</b>
      {children}
      {fix && <p>{fix}</p>}
    </div>
  );
}

export function Nothing({ children }: { children: ComponentChildren }) {
  return <p class="nothing">{children}</p>;
}

export function Failure({ error, retry }: { error: ApiError; retry?: () => void }) {
  return (
    <Trouble title={error.status === 0 ? "No answer" : "The server refused"}>
      <p>{error.message}</p>
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </Trouble>
  );
}

// What was fetched, or why it is not there yet. A value that could not be renewed stays, and says so.
export function Loaded<T>({ of, children }: { of: Fetched<T>; children: (value: T) => ComponentChildren }) {
  if (of.value === undefined)
    return of.error ? <Failure error={of.error} retry={of.reload} /> : <p class="nothing">Loading …</p>;
  return (
    <>
      {of.error && <StatusLine tone="warn">This is not up to date: {of.error.message}.</StatusLine>}
      {children(of.value)}
    </>
  );
}

// A moment as "12 min ago", with the exact one for those who point at it.
export function Ago({ at, now }: { at: number | string; now?: Date }) {
  const date = toDate(at);
  const known = !Number.isNaN(date.getTime());
  return (
    <time {...(known ? { dateTime: date.toISOString(), title: exactText(at) } : {})}>{agoText(at, now)}</time>
  );
}
