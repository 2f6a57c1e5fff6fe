// Everything that a page knows about a node, kept up to date: facts, readings, the past, and who
// holds which knob. Views follow it; while nobody looks it rests.
import { ApiError, request } from "../app/api";
import { followEvents } from "../app/events";
import { hasFeature, token } from "../app/session";
import type { StreamState } from "../app/events";
import { PowerTrack } from "./power_track";
import type { Energy, History, Job, Knob, NodeFacts, Reading, Readings } from "./types";

const factsEvery = 30;
const energyEvery = 20;
const historyEvery = 60;
const knobsPause = 250; // Milliseconds: several changes at once are one question.
const hiddenFor = 20; // Seconds after which a page in the background stops following.
const gapFrom = 3; // Seconds without readings that are asked for again.

export interface Costs {
  lines: string[];
}

export class NodeSource {
  facts: NodeFacts | undefined;
  error: ApiError | undefined; // Of the facts.
  state: StreamState = { kind: "connecting" };
  readings = new Map<string, Reading>();
  tracks = new Map<string, PowerTrack>();
  knobs: Knob[] = [];
  jobs: Job[] = [];
  energy: Energy | undefined; // Since the reader's midnight, or since recording began.
  energySince: Date | undefined;
  costs: Costs | undefined;
  lastSeconds = 0; // The newest reading, by the server's monotonic clock.
  lastHeard = 0; // Milliseconds, by this browser's monotonic clock.
  wallOffset = 0; // Seconds since 1970 minus the server's monotonic clock.
  recordedSince = 0;
  earliest = 0; // The first moment that this page or the server knows anything of.

  private readonly listeners = new Set<() => void>();
  private stopStream: (() => void) | undefined;
  private timers: number[] = [];
  private hiddenTimer = 0;
  private knobsTimer = 0;
  private knobsTurn = 0;
  private period = 1;
  private coarse = new Set<number>(); // Steps of the history that views show.
  private askedUntil = new Map<number, number>(); // By step: how far the history is known.

  follow(listener: () => void): () => void {
    this.listeners.add(listener);
    if (this.listeners.size === 1) this.start();
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size === 0) this.stop();
    };
  }

  // The time between two readings that somebody wants, and the history behind them.
  want(period: number, step: number): void {
    if (step >= 1 && !this.coarse.has(step)) {
      this.coarse.add(step);
      if (this.facts) void this.askHistory(step);
    }
    if (period === this.period) return;
    this.period = period;
    if (this.stopStream) this.openStream();
  }

  // The server's monotonic clock now.
  now(): number {
    return this.lastSeconds + (this.lastHeard ? (performance.now() - this.lastHeard) / 1000 : 0);
  }

  track(device: string): PowerTrack {
    let track = this.tracks.get(device);
    if (!track) this.tracks.set(device, (track = new PowerTrack()));
    return track;
  }

  private tell(): void {
    for (const listener of [...this.listeners]) listener();
  }

  private start(): void {
    document.addEventListener("visibilitychange", this.look);
    this.resume();
  }

  private stop(): void {
    document.removeEventListener("visibilitychange", this.look);
    clearTimeout(this.hiddenTimer);
    this.pause();
  }

  private resume(): void {
    if (this.stopStream) return;
    this.openStream();
    void this.askFacts();
    void this.askKnobs();
    this.askPast();
    this.timers = [
      window.setInterval(() => void this.askFacts(), factsEvery * 1000),
      window.setInterval(() => void this.askKnobs(), factsEvery * 1000),
      window.setInterval(() => void this.askEnergy(), energyEvery * 1000),
      window.setInterval(() => this.askPast(), historyEvery * 1000),
    ];
  }

  private pause(): void {
    this.stopStream?.();
    this.stopStream = undefined;
    for (const timer of this.timers) clearInterval(timer);
    this.timers = [];
  }

  private readonly look = () => {
    clearTimeout(this.hiddenTimer);
    if (!document.hidden) this.resume();
    else this.hiddenTimer = window.setTimeout(() => this.pause(), hiddenFor * 1000);
  };

  private openStream(): void {
    this.stopStream?.();
    this.stopStream = followEvents({
      url: `v1/stream?period=${this.period}`,
      onEvent: ({ kind, data }) => this.take(kind, data),
      onState: (state) => {
        this.state = state;
        this.tell();
      },
      onResumed: () => {
        void this.askFacts();
        void this.askKnobs();
        this.askPast();
      },
    });
  }

  private take(kind: string, data: string): void {
    let value: unknown;
    try {
      value = JSON.parse(data);
    } catch {
      return;
    }
    if (kind === "reading") this.takeReadings(value as Readings);
    else if (kind === "knob" || kind === "lease" || kind === "notice") this.knobsChanged();
  }

  private takeReadings(readings: Readings): void {
    const gap = readings.at_seconds - this.lastSeconds;
    // A machine that was started again counts from the beginning.
    if (gap < -1) {
      this.tracks.clear();
      this.askedUntil.clear();
      this.earliest = 0;
    }
    if (this.lastSeconds > 0 && gap > Math.max(gapFrom, 3 * this.period)) this.askPast();
    this.keepTime(readings);
    this.lastSeconds = readings.at_seconds;
    this.lastHeard = performance.now();
    for (const reading of readings.devices) {
      this.readings.set(reading.device, reading);
      // A device that is lost keeps its last power, which is not the present one.
      const power = reading.reason ? null : reading.power_watts;
      if (typeof power === "number") this.track(reading.device).addReading(readings.at_seconds, power);
    }
    this.tell();
  }

  private keepTime(stamp: { at_seconds: number; time: string }): void {
    const wall = Date.parse(stamp.time) / 1000;
    if (Number.isFinite(wall)) this.wallOffset = wall - stamp.at_seconds;
  }

  private async ask<T>(path: string): Promise<T | undefined> {
    try {
      return await request<T>(path);
    } catch (failure) {
      if (path === "v1/node" && failure instanceof ApiError) this.error = failure;
      return undefined;
    }
  }

  private async askFacts(): Promise<void> {
    const facts = await this.ask<NodeFacts>("v1/node");
    if (facts) {
      this.facts = facts;
      this.error = undefined;
    }
    this.tell();
    if (hasFeature("leases")) {
      const jobs = await this.ask<{ jobs: Job[] }>("v1/jobs");
      if (jobs) this.jobs = jobs.jobs;
    }
    if (hasFeature("costs")) {
      const costs = await this.ask<Costs>("v1/costs");
      if (costs) this.costs = costs;
    }
    this.tell();
  }

  private knobsChanged(): void {
    clearTimeout(this.knobsTimer);
    this.knobsTimer = window.setTimeout(() => void this.askKnobs(), knobsPause);
  }

  private async askKnobs(): Promise<void> {
    if (!hasFeature("leases")) return;
    const turn = ++this.knobsTurn;
    const answer = await this.ask<{ knobs: Knob[] }>("v1/knobs");
    // An answer that was slow must not undo a newer one.
    if (turn !== this.knobsTurn) return;
    if (answer) this.knobs = answer.knobs;
    this.tell();
  }

  private askPast(): void {
    // Seconds and ten seconds always: the numbers of the last hour are sums of them.
    for (const step of new Set([1, 10, ...this.coarse])) void this.askHistory(step);
  }

  private async askHistory(step: number): Promise<void> {
    const known = this.askedUntil.get(step);
    // The last steps once more: they were not settled then.
    const since = known === undefined ? "" : `&since=${Math.floor(known - 2 * step - 10)}`;
    const history = await this.ask<History>(`v1/history?step=${step}${since}`);
    if (!history) return;
    this.askedUntil.set(step, history.at_seconds);
    this.keepTime(history);
    this.recordedSince = history.recorded_since_seconds;
    this.earliest = this.earliest > 0 ? Math.min(this.earliest, this.recordedSince) : this.recordedSince;
    for (const device of history.devices) {
      if (!device.mean_watts) continue;
      this.track(device.device).addHistory(step, history.since_seconds, {
        mean: device.mean_watts,
        low: device.lowest_watts,
        high: device.highest_watts,
        idle: device.idle_watts,
      });
    }
    if (!this.lastHeard) {
      this.lastSeconds = history.at_seconds;
      this.lastHeard = performance.now();
    }
    if (!this.energy) void this.askEnergy();
    this.tell();
  }

  private async askEnergy(): Promise<void> {
    const midnight = new Date();
    midnight.setHours(0, 0, 0, 0);
    const since = Math.max(midnight.getTime() / 1000 - this.wallOffset, this.recordedSince);
    const energy = await this.ask<Energy>(`v1/energy?since=${since}`);
    if (!energy) return;
    this.energy = energy;
    this.energySince = new Date((energy.since_seconds + this.wallOffset) * 1000);
    this.tell();
  }
}

// Pages of one node share what they know, so that going from one to the other asks for nothing. What
// one reader may see is not kept for the next.
let shared: { source: NodeSource; token: string } | undefined;

export function nodeSource(): NodeSource {
  if (shared?.token !== token.value) shared = { source: new NodeSource(), token: token.value };
  return shared.source;
}
