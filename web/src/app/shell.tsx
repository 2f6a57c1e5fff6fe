import { useEffect, useRef, useState } from "preact/hooks";
import { ThemeButton } from "../components/theme";
import { ApiError, request } from "./api";
import { Failure, Nothing } from "./parts";
import { linkTo, match, usePlace } from "./router";
import { refusal, server as described, signOut, token } from "./session";
import type { ServerDescription } from "./session";
import { SignIn } from "./sign_in";
import { useStore } from "./store";
import { isListed, views } from "./views";
import type { View } from "./views";

function found(shown: View[], path: string) {
  for (const view of shown) {
    const parameters = match(view.path, path);
    if (parameters) return { view, parameters };
  }
  return undefined;
}

// The server's description, asked for until it comes.
function useServer() {
  const server = useStore(described);
  const [error, setError] = useState<ApiError>();
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    request<ServerDescription>("app.json").then(
      (answer) => {
        described.value = answer;
        setError(undefined);
      },
      (failure: unknown) =>
        setError(failure instanceof ApiError ? failure : new ApiError(0, String(failure))),
    );
  }, [turn]);
  return { server, error, retry: () => setTurn(turn + 1) };
}

interface BarProps {
  server: ServerDescription;
  shown: View[];
  current: View | undefined;
  askToken: () => void;
}

function Bar({ server, shown, current, askToken }: BarProps) {
  const signedIn = useStore(token) !== "";
  const listed = shown.filter(isListed);
  // The page of one job belongs to the list of jobs.
  const isCurrent = (view: View) =>
    view === current || (!!current && current.path.startsWith(`${view.path}/`) && !isListed(current));
  return (
    <header class="bar">
      <a class="brand" href="#/">
        <svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true">
          <path d="M10.6 0 2 10.4h5.2L5.6 18 16 6.6h-6.2z" fill="currentColor" />
        </svg>
        Zeus
      </a>
      <nav aria-label="Views">
        {listed.map((view) => (
          <a href={`#${view.path}`} {...(isCurrent(view) ? { "aria-current": "page" as const } : {})}>
            {view.title}
          </a>
        ))}
      </nav>
      <div class="tools">
        {server.token !== "none" && (
          <button type="button" onClick={() => (signedIn ? signOut() : askToken())}>
            {signedIn ? "Sign out" : "Sign in"}
          </button>
        )}
        <ThemeButton />
      </div>
    </header>
  );
}

export function Shell() {
  const place = usePlace();
  const signedIn = useStore(token) !== "";
  const refused = useStore(refusal);
  const { server, error, retry } = useServer();
  const [asking, setAsking] = useState(false);
  const main = useRef<HTMLElement>(null);
  const shown = views.filter((view) => server?.features.includes(view.feature));
  const first = shown.find(isListed);
  const path = place.path === "/" && first ? first.path : place.path;
  const here = found(shown, path);

  useEffect(() => {
    document.title = here ? `${here.view.title} · Zeus` : "Zeus";
  }, [here?.view]);
  useEffect(() => {
    setAsking(false);
  }, [signedIn]);
  // Those who cannot see must be told that the view has changed.
  const before = useRef(path);
  useEffect(() => {
    if (before.current === path) return;
    before.current = path;
    scrollTo(0, 0);
    main.current?.focus();
  }, [path]);

  if (!server) return <main class="view">{error ? <Failure error={error} retry={retry} /> : <Nothing>Loading …</Nothing>}</main>;
  const mustSignIn = server.token !== "none" && (refused !== "" || (server.token === "required" && !signedIn));
  const View = here?.view.component;
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>
        Skip to the content
      </a>
      <Bar server={server} shown={shown} current={here?.view} askToken={() => setAsking(true)} />
      <main class="view" ref={main} tabIndex={-1}>
        {mustSignIn || asking ? (
          <SignIn program={server.program} {...(mustSignIn ? {} : { cancel: () => setAsking(false) })} />
        ) : here && View ? (
          <View key={signedIn} parameters={here.parameters} query={place.query} />
        ) : (
          <Nothing>
            There is no such page here{first && (<>: go to <a href={linkTo(first.path.slice(1))}>{first.title}</a></>)}.
          </Nothing>
        )}
      </main>
      <footer class="foot">
        {server.program} {server.version}
      </footer>
    </>
  );
}
