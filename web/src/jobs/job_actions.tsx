// Export and deletion of a job; the latter only for those whose token may.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, request, requestText } from "../app/api";
import { go, linkTo } from "../app/router";
import { save } from "../components/download";
import { useMayChange } from "./data";
import type { JobOverview } from "./types";

function DeleteDialog({ overview, close }: { overview: JobOverview; close: () => void }) {
  const { spec, trials } = overview.job;
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState("");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  useEffect(() => dialog.current?.showModal(), []);
  const remove = async () => {
    setBusy(true);
    try {
      await request(`v1/jobs/${encodeURIComponent(spec.id)}`, { method: "DELETE" });
      go(linkTo("jobs"));
    } catch (failure) {
      setError(failure instanceof ApiError ? failure.message : String(failure));
      setBusy(false);
    }
  };
  return (
    <dialog ref={dialog} aria-labelledby="delete-title" onClose={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (typed === spec.id) void remove();
        }}
      >
        <h2 id="delete-title">Delete job {spec.id}?</h2>
        <p>
          Its {trials} runs, its events and everything that was learned are gone for good; export it first if you may
          need them.
          {overview.running.length > 0 &&
            ` ${overview.running.length === 1 ? "A run is" : `${overview.running.length} runs are`} under way: what they report will be refused.`}
        </p>
        <label>
          Type the name of the job to confirm
          <input value={typed} autocomplete="off" spellcheck={false} onInput={(event) => setTyped(event.currentTarget.value)} />
        </label>
        {error && <p role="alert">{error}</p>}
        <div class="row">
          <button type="submit" class="danger" disabled={typed !== spec.id || busy}>
            Delete
          </button>
          <button type="button" onClick={() => dialog.current?.close()}>
            Keep it
          </button>
        </div>
      </form>
    </dialog>
  );
}

export function JobActions({ overview }: { overview: JobOverview }) {
  const mayChange = useMayChange();
  const [asking, setAsking] = useState(false);
  const [error, setError] = useState("");
  const name = overview.job.spec.id;
  const download = async () => {
    try {
      const text = await requestText(`v1/jobs/${encodeURIComponent(name)}/export`, {
        headers: { Accept: "application/x-ndjson" },
      });
      save(`${name}.jsonl`, "application/x-ndjson", text);
      setError("");
    } catch (failure) {
      setError(failure instanceof ApiError ? failure.message : String(failure));
    }
  };
  return (
    <div class="row actions">
      <button type="button" onClick={() => void download()}>
        Export
      </button>
      {mayChange && (
        <button type="button" onClick={() => setAsking(true)}>
          Delete …
        </button>
      )}
      {error && <span role="alert">{error}</span>}
      {asking && <DeleteDialog overview={overview} close={() => setAsking(false)} />}
    </div>
  );
}
