// Short messages over the page. What went well is a status; what was refused is an alert, and stays.

import { signal } from "@preact/signals";

import { NoAnswer, ServiceError } from "../protocol/errors";
import { texts } from "../texts";
import { atSignOut } from "./session";

export interface Toast {
  readonly number: number;
  readonly kind: "status" | "alert";
  readonly text: string;
}

const STATUS_LASTS_MS = 5_000;

export const toasts = signal<readonly Toast[]>([]);
let last = 0;

export function say(text: string): void {
  const number = add("status", text);
  setTimeout(() => { dismiss(number); }, STATUS_LASTS_MS);
}

/** Announce a refusal in the server's words. */
export function complain(error: unknown): void {
  add("alert", textOfError(error));
}

export function dismiss(number: number): void {
  toasts.value = toasts.value.filter((one) => one.number !== number);
}

/** Return what a person reads of an error: the server's words, its code and the request's id. */
export function textOfError(error: unknown): string {
  if (error instanceof NoAnswer) return texts.errors.noAnswer;
  if (!(error instanceof ServiceError)) return error instanceof Error ? error.message : String(error);
  const id = error.requestId ? texts.errors.requestId(error.requestId) : "";
  return `${error.message === error.code ? "" : `${error.message} `}(${error.status} ${error.code}${id})`;
}

function add(kind: Toast["kind"], text: string): number {
  last += 1;
  toasts.value = [...toasts.value, { number: last, kind, text }];
  return last;
}

atSignOut(() => {
  toasts.value = [];
});
