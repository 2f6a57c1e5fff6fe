import { useEffect, useState } from "preact/hooks";

type Theme = "auto" | "light" | "dark";
const next: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };
const names: Record<Theme, string> = { auto: "As the system", light: "Light", dark: "Dark" };
const place = "zeus-theme";

// Pages opened from a file may have no storage.
function stored(): Theme {
  try {
    const theme = localStorage.getItem(place);
    return theme === "light" || theme === "dark" ? theme : "auto";
  } catch {
    return "auto";
  }
}

function store(theme: Theme): void {
  try {
    localStorage.setItem(place, theme);
  } catch {
    // It holds until the page is closed.
  }
}

export function ThemeButton() {
  const [theme, setTheme] = useState<Theme>(stored);
  useEffect(() => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    store(theme);
  }, [theme]);
  return (
    <button
      type="button"
      class="theme"
      title="Light, dark, or as the system"
      aria-label={`Colours: ${names[theme]}`}
      onClick={() => setTheme(next[theme])}
    >
      <svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true">
        <circle cx="7" cy="7" r="5.5" fill="none" stroke="currentColor" stroke-width="1.4" />
        <path d="M7 1.5a5.5 5.5 0 0 1 0 11z" fill="currentColor" />
      </svg>
      {names[theme]}
    </button>
  );
}
