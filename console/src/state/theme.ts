// Dark or light: what the person chose, else what the system prefers.

import { signal } from "@preact/signals";

export type Theme = "dark" | "light";

const STORED_AS = "strongroom-theme";

export const theme = signal<Theme>("light");

export function startTheme(): void {
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  show(chosen() ?? (prefersDark.matches ? "dark" : "light"));
  prefersDark.addEventListener("change", () => {
    if (!chosen()) show(prefersDark.matches ? "dark" : "light");
  });
}

export function toggleTheme(): void {
  const next = theme.value === "dark" ? "light" : "dark";
  try {
    localStorage.setItem(STORED_AS, next);
  } catch {
    // Storage may be forbidden; the choice then lasts until the page is closed.
  }
  show(next);
}

function show(next: Theme): void {
  document.documentElement.dataset["theme"] = next;
  theme.value = next;
}

function chosen(): Theme | null {
  try {
    const stored = localStorage.getItem(STORED_AS);
    return stored === "dark" || stored === "light" ? stored : null;
  } catch {
    return null;
  }
}
