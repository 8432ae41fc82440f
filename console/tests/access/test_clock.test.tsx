// The clock of a test server is read again and again; what the server refuses then is shown.

import { render } from "preact";
import { afterEach, expect, test, vi } from "vitest";

import { texts } from "../../src/texts";
import { TestClock } from "../../src/views/access/test_clock";

const root = document.createElement("div");

afterEach(() => {
  render(null, root);
  vi.unstubAllGlobals();
});

test("an error of the poll is an alert until the clock can be read again", async () => {
  const answers = { refused: true };
  vi.stubGlobal("fetch", (url: URL) => {
    if (answers.refused) return Promise.resolve(Response.json({ error: { code: "Busy", text: "the clock is busy" } }, { status: 503 }));
    const isClock = url.pathname.endsWith("clock");
    return Promise.resolve(Response.json(isClock ? { store_time: "2030-01-31T12:00:00Z" } : { plan: {}, counts: [] }));
  });
  const alerts = (): (string | null)[] => [...root.querySelectorAll('[role="alert"]')].map((one) => one.textContent).filter(Boolean);
  render(<TestClock />, root);
  await vi.waitFor(() => { expect(alerts()).toEqual(["the clock is busy (503 Busy)"]); }, 30_000);
  answers.refused = false;
  await vi.waitFor(() => { expect(alerts()).toEqual([]); }, 30_000);
  expect(root.querySelector("time")?.dateTime).toBe("2030-01-31T12:00:00Z");
  expect(root.textContent).toContain(texts.testClock.none);
});
