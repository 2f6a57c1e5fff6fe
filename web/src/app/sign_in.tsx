import { useEffect, useRef, useState } from "preact/hooks";
import { refusal, signIn } from "./session";
import { useStore } from "./store";

// Asks for a token. It goes into a header of requests, never into an address.
export function SignIn({ program, cancel }: { program: string; cancel?: () => void }) {
  const [text, setText] = useState("");
  const why = useStore(refusal);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  return (
    <form
      class="card sign-in"
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim()) signIn(text.trim());
      }}
    >
      <h2>Sign in to {program}</h2>
      {why && (
        <p class="status bad" role="alert">
          {why}
        </p>
      )}
      <label>
        Token
        <input
          ref={input}
          type="password"
          autocomplete="current-password"
          spellcheck={false}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <div class="row">
        <button type="submit" class="main" disabled={!text.trim()}>
          Sign in
        </button>
        {cancel && (
          <button type="button" onClick={cancel}>
            Cancel
          </button>
        )}
      </div>
      <p class="faint">The token stays in this tab and is forgotten when you close it.</p>
    </form>
  );
}
