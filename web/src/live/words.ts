// The state of a node, in sentences.
import { powerText, timeText } from "../app/quantity";
import type { GpuFacts, CpuFacts, Knob, Reading, Value } from "./types";

export interface Fault {
  tone: "bad" | "warn";
  what: string;
  fix: string;
}

export function valueText(value: Value | null | undefined): string {
  if (!value) return "the default";
  if (typeof value.watts === "number") return `${value.watts.toFixed(0)} W`;
  if (typeof value.hertz === "number") return `${(value.hertz / 1e6).toFixed(0)} MHz`;
  if (typeof value.lowest_hertz === "number" && typeof value.highest_hertz === "number") {
    const [low, high] = [value.lowest_hertz / 1e6, value.highest_hertz / 1e6].map((mega) => mega.toFixed(0));
    return low === high ? `${low} MHz` : `${low} to ${high} MHz`;
  }
  return value.on ? "on" : "off";
}

// "a job lease “bert” of uid:1001", "a site lease (a power budget; …)".
export function holderText(knob: Knob): string {
  const holder = knob.bound_by;
  if (!holder) return "";
  const name = holder.name ? ` “${holder.name}”` : "";
  const subject = holder.subject ? ` of ${holder.subject}` : "";
  // Readers who may not see the name still learn what sets such limits, and who can see it.
  const kind = holder.class === "site" && !name ? " (a power budget; zeus lease list names it to administrators)" : "";
  return `a ${holder.class} lease${name}${subject}${kind}`;
}

// Why a knob is as it is; empty where it is simply at its default.
export function knobText(knob: Knob): string {
  if (knob.bound_by) return `set by ${holderText(knob)}`;
  if (knob.foreign) return "set by another program, which is respected";
  if (knob.suspended) return "left alone: the device is lost or in maintenance";
  return "";
}

const throttleWords: Record<string, string> = {
  power_cap: "held back by its power limit",
  thermal: "slowed down by heat",
  locked_clock: "kept at a locked clock",
  other: "slowed down by the board or its power supply",
};

export function throttleText(reasons: string[] | undefined): string {
  const words = (reasons ?? []).map((reason) => throttleWords[reason] ?? reason);
  return words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : (words[0] ?? "");
}

// Whether a throttle is a trouble: a cap and a locked clock are what somebody wanted.
export function isTrouble(reason: string): boolean {
  return reason === "thermal" || reason === "other";
}

// Drivers name the device that they speak of, as the sentence does.
function withoutName(reason: string, name: string): string {
  return reason.startsWith(`${name}: `) ? reason.slice(name.length + 2) : reason;
}

export function faultsOf(device: GpuFacts | CpuFacts, reading: Reading | undefined, knobs: Knob[]): Fault[] {
  const name = device.name ?? device.device;
  const faults: Fault[] = [];
  if (device.lost)
    faults.push({
      tone: "bad",
      what: `${name} is lost: its driver does not find it any more.`,
      fix: "Look at dmesg for “fallen off the bus”; a reset of the GPU or a restart of the machine brings it back.",
    });
  else if (device.stuck)
    faults.push({
      tone: "bad",
      what: `${name} is stuck: a call into its driver does not return.`,
      fix: "Look for processes in state D and at dmesg; the other devices go on.",
    });
  else if (reading?.reason)
    faults.push({ tone: "bad", what: `${name} cannot be read: ${withoutName(reading.reason, name)}.`, fix: "zeus doctor says what is missing." });
  if (typeof device.maintenance_left_seconds === "number")
    faults.push({
      tone: "warn",
      what: `${name} is in maintenance for another ${timeText(device.maintenance_left_seconds)}.`,
      fix: `DELETE /v1/gpus/${device.device}/maintenance ends it early.`,
    });
  const trouble = (reading?.throttle ?? []).filter(isTrouble);
  if (trouble.length > 0)
    faults.push({
      tone: "warn",
      what: `${name} is ${throttleText(trouble)}.`,
      fix: trouble.includes("thermal")
        ? "Look at its fans and at the air around it; a lower power limit costs less time than heat does."
        : "Look at the power supply, and at caps that a management controller has set.",
    });
  for (const knob of knobs)
    if (knob.trouble)
      faults.push({
        tone: "warn",
        what: `The ${knob.words} of ${name} is not what it should be: ${knob.trouble}.`,
        fix: "The daemon tries again every few seconds.",
      });
  return faults;
}

// "62 W without work", for a device that draws power and does nothing.
export function idleNow(reading: Reading | undefined): number {
  if (!reading || reading.reason || typeof reading.power_watts !== "number") return 0;
  const busy = reading.compute_utilization;
  return typeof busy === "number" && busy < 0.05 ? reading.power_watts : 0;
}

export interface Waste {
  device: string;
  name: string;
  watts: number; // Now.
  joules: number; // Of the last hour.
  seconds: number; // Of the last hour, without work.
  known: number;
}

export function wasteText(waste: Waste): string {
  const share = waste.seconds / Math.max(waste.known, 1);
  const minutes = Math.max(1, Math.round(waste.known / 60));
  const span = waste.known >= 3500 ? "last hour" : minutes === 1 ? "last minute" : `last ${minutes} minutes`;
  const energy = `${(waste.joules / 3600).toFixed(waste.joules < 36000 ? 1 : 0)} Wh`;
  const time = share > 0.995 ? `the whole ${span}` : `${Math.round(100 * share)} % of the ${span}`;
  return `${waste.name} had nothing to do for ${time} and drew ${energy} meanwhile (${powerText(waste.joules / Math.max(waste.seconds, 1))})`;
}
