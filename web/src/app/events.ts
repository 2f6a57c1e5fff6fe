// Server-sent events over fetch, which can send the token as a header; the browser's own
// EventSource cannot. A connection that ends or falls silent is opened again by itself, with a
// pause that grows, and at once when the network or the reader comes back.
import { ApiError, authorization, noteRefusal, sentenceOf } from "./api";
import { EventParser } from "./event_parser";
import type { ServerEvent } from "./event_parser";

export type StreamState =
  | { kind: "connecting" }
  | { kind: "open" }
  | { kind: "waiting"; why: string; until: number } // Milliseconds since 1970.
  | { kind: "ended"; why: string }; // The server refused: trying again would not help.

export interface StreamOptions {
  url: string;
  onEvent: (event: ServerEvent) => void;
  onState?: (state: StreamState) => void;
  // The stream is open again after an interruption. What happened meanwhile may be lost: views read
  // it from where the server keeps it, or admit the gap.
  onResumed?: (silentSeconds: number) => void;
  // The server sends something at least this often, a comment if nothing else.
  silenceSeconds?: number;
}

const firstPause = 500;
const longestPause = 15_000;

class EventStream {
  private abort = new AbortController();
  private timer = 0;
  private watchdog = 0;
  private pause = firstPause;
  private lastId = "";
  private lastHeard = 0;
  private stopped = false;
  private wasOpen = false;
  private waiting = false;

  constructor(private readonly options: StreamOptions) {
    addEventListener("online", this.hurry);
    document.addEventListener("visibilitychange", this.hurry);
    void this.run();
  }

  stop(): void {
    this.stopped = true;
    removeEventListener("online", this.hurry);
    document.removeEventListener("visibilitychange", this.hurry);
    clearTimeout(this.timer);
    clearTimeout(this.watchdog);
    this.abort.abort();
  }

  private readonly hurry = () => {
    if (!this.waiting || document.hidden) return;
    clearTimeout(this.timer);
    void this.run();
  };

  private tell(state: StreamState): void {
    if (!this.stopped) this.options.onState?.(state);
  }

  private async run(): Promise<void> {
    this.waiting = false;
    this.abort = new AbortController();
    this.tell({ kind: "connecting" });
    let why = "the server ended the stream";
    try {
      await this.follow();
    } catch (failure) {
      if (this.stopped) return;
      if (failure instanceof ApiError && failure.status >= 400 && failure.status < 500 && failure.status !== 429) {
        this.tell({ kind: "ended", why: failure.message });
        return;
      }
      why = failure instanceof ApiError ? failure.message : "the connection was lost";
    }
    clearTimeout(this.watchdog);
    if (this.stopped) return;
    this.waiting = true;
    // Many pages that lost one server must not come back in the same moment.
    const pause = this.pause * (0.75 + 0.5 * Math.random());
    this.pause = Math.min(2 * this.pause, longestPause);
    this.tell({ kind: "waiting", why, until: Date.now() + pause });
    this.timer = window.setTimeout(() => void this.run(), pause);
  }

  private async follow(): Promise<void> {
    const headers: Record<string, string> = { Accept: "text/event-stream", ...authorization() };
    if (this.lastId) headers["Last-Event-ID"] = this.lastId;
    this.listen();
    const response = await fetch(this.options.url, {
      headers,
      cache: "no-store",
      credentials: "same-origin",
      redirect: "error",
      signal: this.abort.signal,
    });
    if (!response.ok) throw noteRefusal(sentenceOf(response.status, await response.text()));
    if (!response.body) throw new ApiError(0, "this browser cannot read streams");
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new EventParser();
    this.tell({ kind: "open" });
    if (this.wasOpen) this.options.onResumed?.((Date.now() - this.lastHeard) / 1000);
    this.wasOpen = true;
    for (;;) {
      const { done, value } = await reader.read();
      if (done || this.stopped) return;
      this.listen();
      this.pause = firstPause;
      this.lastHeard = Date.now();
      for (const event of parser.feed(value)) {
        if (event.id) this.lastId = event.id;
        this.options.onEvent(event);
      }
    }
  }

  // Gives the server time to be heard again. A machine that slept, or a cable that was pulled,
  // leaves a connection that looks open.
  private listen(): void {
    clearTimeout(this.watchdog);
    const silence = this.options.silenceSeconds ?? 40;
    this.watchdog = window.setTimeout(() => this.abort.abort(), silence * 1000);
  }
}

// Follows a stream until the returned function is called.
export function followEvents(options: StreamOptions): () => void {
  const stream = new EventStream(options);
  return () => stream.stop();
}
