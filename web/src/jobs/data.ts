// The server's answers about jobs, kept up to date by its stream of events.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, request, useFetched } from "../app/api";
import { followEvents } from "../app/events";
import type { StreamState } from "../app/events";
import type { Caller, JobOverview, Recurrence } from "./types";

// Changes that come at once cost one request.
const pause = 400;
// From so many changed jobs on, the whole list is asked for.
const mostSingle = 8;
const pageSize = 500;

interface EventBody {
  job_id?: string;
}

async function allPages<T>(path: string, read: (page: Record<string, unknown>) => T[], signal?: AbortSignal): Promise<T[]> {
  const all: T[] = [];
  for (let after = ""; ; ) {
    const page = await request<Record<string, unknown>>(
      `${path}?limit=${pageSize}${after && `&after=${encodeURIComponent(after)}`}`,
      signal ? { signal } : {},
    );
    all.push(...read(page));
    if (page.next === null) return all;
    after = String(page.next);
  }
}

export function allRecurrences(job: string): Promise<Recurrence[]> {
  return allPages(`v1/jobs/${encodeURIComponent(job)}/recurrences`, (page) => page.recurrences as Recurrence[]);
}

export function allPlans<T>(): Promise<T[]> {
  return allPages("v1/plan-summaries", (page) => page.plans as T[]);
}

const toError = (failure: unknown) =>
  failure instanceof ApiError ? failure : new ApiError(0, String(failure));

export interface LiveJobs {
  jobs: JobOverview[] | undefined;
  error: ApiError | undefined;
  stream: StreamState;
  reload: () => void;
}

// All jobs of the reader's name space. Jobs that the stream names are asked for again; after a gap,
// all are.
export function useLiveJobs(): LiveJobs {
  const [jobs, setJobs] = useState<Map<string, JobOverview>>();
  const [error, setError] = useState<ApiError>();
  const [stream, setStream] = useState<StreamState>({ kind: "connecting" });
  const changed = useRef(new Set<string>());
  const everything = useRef(true);
  const timer = useRef(0);
  const busy = useRef(false);

  const renew = useCallback(async () => {
    timer.current = 0;
    busy.current = true;
    const names = [...changed.current];
    const all = everything.current || names.length > mostSingle;
    changed.current.clear();
    everything.current = false;
    try {
      if (all) {
        const list = await allPages("v1/job-overviews", (page) => page.jobs as JobOverview[]);
        setJobs(new Map(list.map((one) => [one.job.spec.id, one])));
      } else {
        const news = await Promise.all(names.map(overviewOrNothing));
        setJobs((before) => {
          const next = new Map(before);
          names.forEach((name, i) => (news[i] ? next.set(name, news[i]) : next.delete(name)));
          return next;
        });
      }
      setError(undefined);
    } catch (failure) {
      everything.current = true;
      setError(toError(failure));
    }
    busy.current = false;
    if (changed.current.size > 0) ask();
  }, []);
  const ask = useCallback(() => {
    if (timer.current === 0 && !busy.current) timer.current = window.setTimeout(() => void renew(), pause);
  }, [renew]);
  const reload = useCallback(() => {
    everything.current = true;
    changed.current.add("");
    ask();
  }, [ask]);

  useEffect(() => {
    void renew();
    const stop = followEvents({
      url: "v1/events",
      onState: setStream,
      onEvent: (event) => {
        if (event.kind === "current") return;
        if (event.kind === "reset") {
          reload();
          return;
        }
        const name = (JSON.parse(event.data) as EventBody).job_id;
        if (name) changed.current.add(name);
        ask();
      },
      onResumed: reload,
    });
    return () => {
      stop();
      clearTimeout(timer.current);
    };
  }, []);
  return {
    jobs: jobs && [...jobs.values()].sort((a, b) => a.job.spec.id.localeCompare(b.job.spec.id)),
    error,
    stream,
    reload,
  };
}

async function overviewOrNothing(name: string): Promise<JobOverview | undefined> {
  if (!name) return undefined;
  try {
    return await request<JobOverview>(`v1/jobs/${encodeURIComponent(name)}/overview`);
  } catch (failure) {
    if (failure instanceof ApiError && failure.status === 404) return undefined;
    throw failure;
  }
}

export interface LiveJob {
  overview: JobOverview | undefined;
  recurrences: Recurrence[] | undefined;
  error: ApiError | undefined;
  gone: boolean; // It was deleted.
  stream: StreamState;
  reload: () => void;
}

// The number of runs that have ended: beliefs, savings and recurrences change with it.
export function endedTrials(overview: JobOverview): number {
  return overview.job.trials - overview.running.length;
}

// One job and its recurrences.
export function useLiveJob(name: string): LiveJob {
  const [overview, setOverview] = useState<JobOverview>();
  const [recurrences, setRecurrences] = useState<Recurrence[]>();
  const [error, setError] = useState<ApiError>();
  const [stream, setStream] = useState<StreamState>({ kind: "connecting" });
  const timer = useRef(0);
  const busy = useRef(false);
  const again = useRef(false);
  const ended = useRef(""); // The state for which recurrences were loaded: epochs change none of them.

  const renew = useCallback(async () => {
    timer.current = 0;
    busy.current = true;
    again.current = false;
    try {
      const one = await request<JobOverview>(`v1/jobs/${encodeURIComponent(name)}/overview`);
      const now = `${one.job.created_at} ${endedTrials(one)}`;
      if (now !== ended.current) {
        setRecurrences(await allRecurrences(name));
        ended.current = now;
      }
      setOverview(one);
      setError(undefined);
    } catch (failure) {
      setError(toError(failure));
    }
    busy.current = false;
    if (again.current) ask();
  }, [name]);
  const ask = useCallback(() => {
    again.current = true;
    if (timer.current === 0 && !busy.current) timer.current = window.setTimeout(() => void renew(), pause);
  }, [renew]);

  useEffect(() => {
    void renew();
    const stop = followEvents({
      url: "v1/events",
      onState: setStream,
      onEvent: (event) => {
        if (event.kind === "current") return;
        if (event.kind === "reset" || (JSON.parse(event.data) as EventBody).job_id === name) ask();
      },
      onResumed: ask,
    });
    return () => {
      stop();
      clearTimeout(timer.current);
    };
  }, [name]);
  return { overview, recurrences, error, gone: error?.status === 404, stream, reload: ask };
}

// Whether the reader's token may delete things; false until that is known.
export function useMayChange(): boolean {
  return useFetched<Caller>("v1/me").value?.may_change ?? false;
}
