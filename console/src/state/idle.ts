// Signs out by itself after minutes without a key or a click. The page's own polls do not count.

const ACTS = ["keydown", "pointerdown", "wheel", "touchstart"] as const;
const CHECK_EVERY_MS = 5_000;

/**
 * Call `expire` once, when there was no act for `minutes`. Return what stops the watch.
 *
 * While something is `busy` the time begins anew, so that a long upload is not ended.
 *
 * The clock is compared, not a timer's length: a computer that slept signs out when it wakes.
 */
export function watchIdle(minutes: number, expire: () => void, now: () => number = Date.now, busy: () => boolean = () => false): () => void {
  let last = now();
  const act = (): void => {
    if (!check()) last = now();
  };
  const check = (): boolean => {
    if (busy()) last = now();
    if (now() - last < minutes * 60_000) return false;
    stop();
    expire();
    return true;
  };
  const timer = setInterval(check, CHECK_EVERY_MS);
  const stop = (): void => {
    clearInterval(timer);
    for (const name of ACTS) removeEventListener(name, act, true);
  };
  for (const name of ACTS) addEventListener(name, act, { capture: true, passive: true });
  return stop;
}
