// Requests to the server that this page came from. Every request carries the token of this tab.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { refusal, token } from "./session";

// An answer that is no success, with the server's sentence. Status 0: there was no answer.
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code = "",
  ) {
    super(message);
  }
}

export function authorization(): Record<string, string> {
  return token.value ? { Authorization: `Bearer ${token.value}` } : {};
}

// The sentence in the body of an error: ours, or that of the reference's dialect.
export function sentenceOf(status: number, body: string): ApiError {
  try {
    const { error, detail } = JSON.parse(body) as {
      error?: { message?: unknown; code?: unknown } | string;
      detail?: unknown;
    };
    if (typeof error === "string") return new ApiError(status, error);
    if (typeof error?.message === "string")
      return new ApiError(status, error.message, typeof error.code === "string" ? error.code : "");
    if (typeof detail === "string") return new ApiError(status, detail);
  } catch {
    // It is not JSON: a proxy's page, perhaps.
  }
  return new ApiError(status, `the server answered with status ${status}`);
}

// Notes what a refused request says about signing in.
export function noteRefusal(error: ApiError): ApiError {
  if (error.status === 401) refusal.value = error.message;
  return error;
}

export interface RequestOptions {
  method?: string;
  body?: unknown; // Sent as JSON.
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

async function answerOf(path: string, options: RequestOptions): Promise<Response> {
  const { method = "GET", body, headers = {}, signal } = options;
  const all: Record<string, string> = { Accept: "application/json", ...authorization(), ...headers };
  if (body !== undefined) all["Content-Type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      headers: all,
      cache: "no-store",
      credentials: "same-origin",
      redirect: "error",
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
    });
  } catch (failure) {
    if (signal?.aborted) throw failure;
    throw new ApiError(0, "the server does not answer");
  }
  if (!response.ok) throw noteRefusal(sentenceOf(response.status, await response.text()));
  return response;
}

// The JSON of an answer; undefined for one without a body.
export async function request<T>(path: string, options: RequestOptions = {}): Promise<T> {
  const text = await (await answerOf(path, options)).text();
  return (text ? JSON.parse(text) : undefined) as T;
}

export async function requestText(path: string, options: RequestOptions = {}): Promise<string> {
  return (await answerOf(path, options)).text();
}

export interface Fetched<T> {
  value: T | undefined; // The latest good answer, also while a newer one fails.
  error: ApiError | undefined;
  loading: boolean; // There is no answer yet.
  reload: () => void;
}

// The answer to GET `path`, asked again every `seconds` while somebody looks at the page. An empty
// path asks for nothing.
export function useFetched<T>(path: string, seconds = 0): Fetched<T> {
  const [state, setState] = useState<{ path: string; value?: T; error?: ApiError }>({ path });
  const [turn, setTurn] = useState(0);
  const latest = useRef(path);
  latest.current = path;
  useEffect(() => {
    if (!path) return;
    const abort = new AbortController();
    let timer = 0;
    const ask = async () => {
      try {
        const value = await request<T>(path, { signal: abort.signal });
        if (!abort.signal.aborted) setState({ path, value });
      } catch (failure) {
        if (abort.signal.aborted) return;
        const error = failure instanceof ApiError ? failure : new ApiError(0, String(failure));
        setState((before) =>
          before.path === path && before.value !== undefined
            ? { path, value: before.value, error }
            : { path, error },
        );
      }
      if (seconds > 0 && !abort.signal.aborted) timer = window.setTimeout(later, seconds * 1000);
    };
    const later = () => {
      if (document.hidden) document.addEventListener("visibilitychange", ask, { once: true });
      else void ask();
    };
    void ask();
    return () => {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", ask);
    };
  }, [path, seconds, turn]);
  const reload = useCallback(() => setTurn((before) => before + 1), []);
  const mine = state.path === path ? state : { path };
  return {
    value: "value" in mine ? mine.value : undefined,
    error: "error" in mine ? mine.error : undefined,
    loading: path !== "" && !("value" in mine) && !("error" in mine),
    reload,
  };
}
