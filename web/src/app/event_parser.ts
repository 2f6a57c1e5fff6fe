// The text of server-sent events, which arrives in pieces of any size.

export interface ServerEvent {
  kind: string; // "message" where the server names none.
  data: string;
  id: string; // The id to continue from; empty while the server gave none.
}

export class EventParser {
  private rest = "";
  private kind = "";
  private data: string[] = [];
  private id = "";

  // The events that `piece` completes.
  feed(piece: string): ServerEvent[] {
    this.rest += piece;
    const events: ServerEvent[] = [];
    for (;;) {
      const end = this.rest.search(/[\r\n]/);
      if (end < 0) break;
      // A carriage return at the end may be half of a line end.
      if (this.rest[end] === "\r" && end === this.rest.length - 1) break;
      const wide = this.rest.startsWith("\r\n", end);
      const line = this.rest.slice(0, end);
      this.rest = this.rest.slice(end + (wide ? 2 : 1));
      const event = this.take(line);
      if (event) events.push(event);
    }
    return events;
  }

  private take(line: string): ServerEvent | undefined {
    if (line === "") {
      const event = { kind: this.kind || "message", data: this.data.join("\n"), id: this.id };
      const whole = this.data.length > 0;
      this.kind = "";
      this.data = [];
      return whole ? event : undefined;
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") this.kind = value;
    else if (name === "data") this.data.push(value);
    else if (name === "id" && !value.includes("\0")) this.id = value;
    return undefined;
  }
}
