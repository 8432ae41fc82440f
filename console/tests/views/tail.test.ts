import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { session } from "../../src/state/session";
import { tailOf } from "../../src/views/requests/tail";

const PAUSE_MS = 500;
let asked: URL[] = [];
let answers: { newest: number; oldest_kept: number; requests: { number: number }[] }[] = [];

function rows(from: number, to: number): { number: number }[] {
  return Array.from({ length: to - from + 1 }, (_, at) => ({ number: from + at }));
}

beforeEach(() => {
  vi.useFakeTimers();
  asked = [];
  session.value = { credential: { kind: "bearer", token: "t" }, who: null };
  vi.stubGlobal("fetch", (url: URL) => {
    asked.push(new URL(url));
    const next = answers.shift();
    return next ? Promise.resolve(new Response(JSON.stringify(next))) : new Promise(() => undefined);
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  session.value = null;
});

test("a tail that falls behind goes on with the newest, and says what passed", async () => {
  answers = [
    { newest: 500, oldest_kept: 1, requests: rows(1, 500) },
    { newest: 1000, oldest_kept: 1, requests: rows(501, 1000) },
    { newest: 4500, oldest_kept: 1, requests: rows(4001, 4500) },
    { newest: 4600, oldest_kept: 1, requests: rows(4101, 4600) },
  ];
  const tail = tailOf("");
  const stop = tail.run();
  await vi.advanceTimersByTimeAsync(4 * PAUSE_MS);
  stop();
  expect(asked.map((url) => url.searchParams.get("after"))).toEqual(["0", "500", "0", "0", "4600"]);
  expect(asked.map((url) => url.searchParams.get("wait_s"))).toEqual(["0", "20", "0", "0", "20"]);
  expect(tail.hasLost.value).toBe(true);
  expect(tail.rows.value.map((one) => one.number)).toEqual([...rows(1, 1000), ...rows(4001, 4600)].map((one) => one.number));
});

test("a server whose numbers begin anew is followed", async () => {
  answers = [
    { newest: 70, oldest_kept: 1, requests: rows(69, 70) },
    { newest: 2, oldest_kept: 1, requests: rows(1, 2) },
  ];
  const tail = tailOf("");
  const stop = tail.run();
  await vi.advanceTimersByTimeAsync(2 * PAUSE_MS);
  stop();
  expect(tail.rows.value.map((one) => one.number)).toEqual([69, 70, 1, 2]);
  expect(asked.at(-1)?.searchParams.get("after")).toBe("2");
});

test("numbers that the filter leaves out did not pass by", async () => {
  const everyTenth = (from: number, count: number): { number: number }[] => Array.from({ length: count }, (_, at) => ({ number: from + at * 10 }));
  answers = [
    { newest: 10, oldest_kept: 1, requests: everyTenth(10, 1) },
    { newest: 5010, oldest_kept: 1, requests: everyTenth(20, 500) },
    { newest: 9010, oldest_kept: 1, requests: [{ number: 9000 }] },
  ];
  const tail = tailOf("alice");
  const stop = tail.run();
  await vi.advanceTimersByTimeAsync(3 * PAUSE_MS);
  stop();
  expect(tail.rows.value).toHaveLength(502);
  expect(tail.hasLost.value).toBe(false);
});
