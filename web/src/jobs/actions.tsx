// Export and deletion; the latter only for those whose token may.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, request, requestText } from "../app/api";
import { go } from "../app/router";
import { save } from "../components/download";
import { useMayChange } from "./data";

const wordsOf = (failure: unknown) => (failure instanceof ApiError ? failure.message : String(failure));

export interface ActionsProps {
  kind: string; // "job"
  name: string;
  path: string; // DELETE deletes it.
  loss: string; // The things that would be gone, as a sentence.
  list: string; // The address of the view to go to afterwards.
  file: { name: string; type: string; path: string }; // The export.
}

function DeleteDialog({ kind, name, path, loss, list, close }: ActionsProps & { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState("");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  useEffect(() => dialog.current?.showModal(), []);
  const remove = async () => {
    setBusy(true);
    try {
      await request(path, { method: "DELETE" });
      go(list);
    } catch (failure) {
      setError(wordsOf(failure));
      setBusy(false);
    }
  };
  return (
    <dialog ref={dialog} aria-labelledby="delete-title" onClose={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (typed === name) void remove();
        }}
      >
        <h2 id="delete-title">
          Delete {kind} {name}?
        </h2>
        <p>{loss}</p>
        <label>
          Type the name of the {kind} to confirm
          <input value={typed} autocomplete="off" spellcheck={false} onInput={(event) => setTyped(event.currentTarget.value)} />
        </label>
        {error && <p role="alert">{error}</p>}
        <div class="row">
          <button type="submit" class="danger" disabled={typed !== name || busy}>
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

export function Actions(props: ActionsProps) {
  const mayChange = useMayChange();
  const [asking, setAsking] = useState(false);
  const [error, setError] = useState("");
  const { file } = props;
  const download = async () => {
    try {
      save(file.name, file.type, await requestText(file.path, { headers: { Accept: file.type } }));
      setError("");
    } catch (failure) {
      setError(wordsOf(failure));
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
      {asking && <DeleteDialog {...props} close={() => setAsking(false)} />}
    </div>
  );
}
