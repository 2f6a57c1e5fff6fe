// One duel as this page follows it: begun here, or named by the page's address after a reload.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, request } from "../app/api";
import { followEvents } from "../app/events";
import type { Choice, Duel, SideName, StageName } from "./types";

interface AnswerEvent {
  a: string;
  b: string;
  stage?: StageName;
}

export interface DuelState {
  duel: Duel | undefined;
  texts: Record<SideName, string>;
  // Both texts are shown as far as they go.
  complete: boolean;
  busy: boolean; // An answer of the server is awaited.
  error: ApiError | undefined;
  interrupted: string; // Why the stream is not there at the moment; empty while it is.
}

const nothing: DuelState = {
  duel: undefined,
  texts: { a: "", b: "" },
  complete: false,
  busy: false,
  error: undefined,
  interrupted: "",
};

// The address of the page names a duel, and anybody may write an address.
const pathOf = (id: string) => `zeus/duels/${encodeURIComponent(id)}`;

const asError = (failure: unknown) =>
  failure instanceof ApiError ? failure : new ApiError(0, String(failure));

export interface DuelActions {
  begin: (prompt: string, prefer: string) => Promise<string | undefined>; // The id.
  vote: (choice: Choice) => void;
  judge: (worth: boolean) => void;
  change: (choice: Choice) => void;
  forget: () => void;
}

export function useDuel(id: string): [DuelState, DuelActions] {
  const [state, setState] = useState<DuelState>(nothing);
  const [following, setFollowing] = useState("");
  const latest = useRef(state);
  latest.current = state;
  const update = useCallback((part: Partial<DuelState>) => setState((before) => ({ ...before, ...part })), []);

  const look = useCallback(
    async (which: string) => {
      try {
        update({ duel: await request<Duel>(pathOf(which)), busy: false, error: undefined });
      } catch (failure) {
        update({ error: asError(failure), busy: false });
      }
    },
    [update],
  );

  useEffect(() => {
    if (!following) return;
    const stop = followEvents({
      url: `${pathOf(following)}/events`,
      onEvent: ({ data }) => {
        const event = JSON.parse(data) as AnswerEvent;
        setState((before) => ({
          ...before,
          texts: { a: before.texts.a + event.a, b: before.texts.b + event.b },
          complete: before.complete || event.stage !== undefined,
        }));
        if (!event.stage) return;
        stop();
        void look(following);
      },
      onState: (stream) => {
        if (stream.kind === "ended") update({ error: new ApiError(410, stream.why), complete: true });
        update({ interrupted: stream.kind === "waiting" ? stream.why : "" });
      },
    });
    return stop;
  }, [following, look, update]);

  // A duel that the address names and this page has not begun.
  useEffect(() => {
    if (!id) {
      setState(nothing);
      setFollowing("");
    } else if (latest.current.duel?.id !== id) {
      setState({ ...nothing, busy: true });
      void look(id).then(() => setFollowing(id));
    }
  }, [id, look]);

  const begin = useCallback(
    async (prompt: string, prefer: string) => {
      setFollowing("");
      setState({ ...nothing, busy: true });
      try {
        const body = { prompt, ...(prefer ? { prefer } : {}) };
        const duel = await request<Duel>("zeus/duels", { method: "POST", body });
        setState({ ...nothing, duel });
        setFollowing(duel.id);
        return duel.id;
      } catch (failure) {
        setState({ ...nothing, error: asError(failure) });
        return undefined;
      }
    },
    [],
  );

  const cast = useCallback(
    async (what: string, body: unknown) => {
      const duel = latest.current.duel;
      if (!duel || latest.current.busy) return;
      update({ busy: true });
      try {
        const after = await request<Duel>(`${pathOf(duel.id)}/${what}`, { method: "POST", body });
        update({ duel: after, busy: false, error: undefined });
      } catch (failure) {
        update({ error: asError(failure), busy: false });
      }
    },
    [update],
  );

  return [
    state,
    {
      begin,
      vote: (choice) => void cast("vote", { choice }),
      judge: (worth) => void cast("worth", { worth }),
      change: (choice) => void cast("change", { choice }),
      forget: () => {
        setFollowing("");
        setState(nothing);
      },
    },
  ];
}
