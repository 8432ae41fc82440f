// What a server with a test clock can do: move its time, and meet requests with faults. Here: its
// endpoints, which programs use too. Source: docs/testing.md.

import { askOwn } from "./requests";

export const FAULTS = ["busy", "error", "lost-reply", "cut", "hold-copy", "pass"] as const;
export type Fault = (typeof FAULTS)[number];

/** A rule; parts that this page does not set stay as they are. */
export interface FaultRule {
  readonly operation?: string;
  readonly resource?: string;
  readonly fault?: string;
  readonly delay_s?: number;
  /** null: no limit. */
  readonly times?: number | null;
}

export interface Faults {
  readonly plan: { readonly rules?: readonly FaultRule[]; readonly seed?: number };
  /** For each rule: how many requests matched it, and how many of them were hit. */
  readonly counts: readonly { readonly matched: number; readonly hit: number }[];
}

/** Return store time, in RFC 3339. */
export async function storeTime(signal?: AbortSignal): Promise<string> {
  return (await askOwn<{ readonly store_time: string }>("GET", "clock", undefined, signal)).store_time;
}

/** Let time pass at once. Return store time after it. */
export async function advance(seconds: number): Promise<string> {
  return (await askOwn<{ readonly store_time: string }>("POST", "clock", { advance_s: seconds })).store_time;
}

export async function readFaults(signal?: AbortSignal): Promise<Faults> {
  return askOwn<Faults>("GET", "faults", undefined, signal);
}

/** Add a rule behind those that there are. All counts begin anew. */
export async function orderFault(rule: FaultRule): Promise<Faults> {
  const { plan } = await readFaults();
  return askOwn<Faults>("PUT", "faults", { ...plan, rules: [...(plan.rules ?? []), rule] });
}

export async function clearFaults(): Promise<Faults> {
  return askOwn<Faults>("DELETE", "faults");
}
