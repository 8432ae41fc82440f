import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { watchIdle } from "../src/state/idle";

beforeEach(() => { vi.useFakeTimers(); });
afterEach(() => { vi.useRealTimers(); });

test("without a key or a click for so long, it expires once", () => {
  const expire = vi.fn();
  watchIdle(30, expire);
  vi.advanceTimersByTime(29 * 60_000);
  expect(expire).not.toHaveBeenCalled();
  vi.advanceTimersByTime(2 * 60_000);
  expect(expire).toHaveBeenCalledTimes(1);
});

test("a key begins the time anew", () => {
  const expire = vi.fn();
  watchIdle(30, expire);
  vi.advanceTimersByTime(29 * 60_000);
  dispatchEvent(new Event("keydown"));
  vi.advanceTimersByTime(29 * 60_000);
  expect(expire).not.toHaveBeenCalled();
});

test("a click after a sleep of the computer comes too late", () => {
  const expire = vi.fn();
  let now = 0;
  watchIdle(30, expire, () => now);
  now = 31 * 60_000;
  dispatchEvent(new Event("pointerdown"));
  expect(expire).toHaveBeenCalledTimes(1);
});

test("while something is busy the time does not run, and begins anew at its end", () => {
  const expire = vi.fn();
  let isBusy = true;
  watchIdle(30, expire, Date.now, () => isBusy);
  vi.advanceTimersByTime(300 * 60_000);
  isBusy = false;
  vi.advanceTimersByTime(29 * 60_000);
  expect(expire).not.toHaveBeenCalled();
  vi.advanceTimersByTime(2 * 60_000);
  expect(expire).toHaveBeenCalledTimes(1);
});
