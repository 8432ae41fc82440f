// A bounded number of things at once, over all uploads: a slot is one block in memory.

export class Slots {
  private waiting: (() => void)[] = [];

  constructor(private free: number) {}

  /** Wait for a slot. Return what gives it back. Raises: the signal's reason when it fires first. */
  async take(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.free > 0) this.free -= 1;
    else await this.queued(signal);
    let isGiven = false;
    return () => {
      if (isGiven) return;
      isGiven = true;
      const next = this.waiting.shift();
      if (next) next();
      else this.free += 1;
    };
  }

  private queued(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = (): void => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      const leave = (): void => {
        this.waiting = this.waiting.filter((one) => one !== go);
        reject(signal.reason as Error);
      };
      this.waiting.push(go);
      signal.addEventListener("abort", leave, { once: true });
    });
  }
}
