import type { StreamState } from "../app/events";
import { StatusLine } from "../app/parts";

// Whether the page is live, in words.
export function StreamLine({ stream }: { stream: StreamState }) {
  if (stream.kind === "open") return <StatusLine tone="good" spoken>live</StatusLine>;
  if (stream.kind === "connecting") return <StatusLine tone="off">connecting …</StatusLine>;
  const again = stream.kind === "waiting" ? "; trying again" : "";
  return (
    <StatusLine tone="warn" spoken>
      not live: {stream.why}
      {again}
    </StatusLine>
  );
}
