// The operations of the Queue service that the page uses. Source: "Queue service REST API". Not
// here: signatures (requests.ts), what is shown (views/queues/).

import type { Credential } from "./credentials";
import { type DataRequest, pathOf, send } from "./requests";

export interface QueuePage {
  readonly rows: readonly string[];
  /** For the next page; "" after the last. */
  readonly next: string;
}

export interface Message {
  readonly id: string;
  readonly text: string;
  readonly dequeueCount: number;
  /** RFC 3339. */
  readonly insertedTime: string;
  readonly expiresTime: string;
}

/** A message that was gotten: nobody else sees it until its visibility ends. */
export interface HeldMessage extends Message {
  readonly popReceipt: string;
  /** How long it stays invisible, counted from the answer. */
  readonly invisibleMs: number;
}

/** What update returns: the receipt to use from now on. */
export interface Held {
  readonly popReceipt: string;
  readonly invisibleMs: number;
}

export interface QueueAt {
  readonly account: string;
  readonly queue: string;
}

export const MESSAGES_MAX = 32;

export async function listQueues(
  credential: Credential,
  account: string,
  query: { readonly prefix: string; readonly marker: string; readonly maxresults: number },
  signal?: AbortSignal,
): Promise<QueuePage> {
  const { prefix, marker, maxresults } = query;
  const parameters = { comp: "list", maxresults, prefix: prefix || undefined, marker: marker || undefined };
  const answer = await send(credential, {
    method: "GET", service: "queue", account, path: "", query: parameters, ...(signal ? { signal } : {}),
  });
  const root = await xmlOf(answer);
  const rows = [...root.getElementsByTagName("Queue")].map((one) => childText(one, "Name"));
  return { rows, next: childText(root, "NextMarker") };
}

/** Return about how many messages a queue has. */
export async function queueLength(credential: Credential, at: QueueAt, signal?: AbortSignal): Promise<number> {
  const request = { ...requestOf(at, "GET"), query: { comp: "metadata" } };
  const answer = await send(credential, signal ? { ...request, signal } : request);
  return Number(answer.headers.get("x-ms-approximate-messages-count") ?? 0);
}

/** Make a queue. Return false if it was there already, with the same metadata. */
export async function createQueue(credential: Credential, at: QueueAt): Promise<boolean> {
  return (await send(credential, requestOf(at, "PUT"))).status === 201;
}

export async function deleteQueue(credential: Credential, at: QueueAt): Promise<void> {
  await send(credential, requestOf(at, "DELETE"));
}

export interface PutOptions {
  readonly text: string;
  /** 0: at once. */
  readonly visibleAfterS: number;
  /** -1: never; null: as the service does without it, which is seven days. */
  readonly livesS: number | null;
}

export async function putMessage(credential: Credential, at: QueueAt, { text, visibleAfterS, livesS }: PutOptions): Promise<void> {
  const query = { visibilitytimeout: visibleAfterS || undefined, messagettl: livesS ?? undefined };
  await send(credential, { ...requestOf(at, "POST", "messages"), query, ...bodyOf(text) });
}

export async function peekMessages(credential: Credential, at: QueueAt, count: number): Promise<readonly Message[]> {
  const query = { peekonly: "true", numofmessages: count };
  const answer = await send(credential, { ...requestOf(at, "GET", "messages"), query });
  return messagesOf(await xmlOf(answer)).map((one) => messageOf(one));
}

export async function getMessages(
  credential: Credential,
  at: QueueAt,
  count: number,
  invisibleS: number,
): Promise<readonly HeldMessage[]> {
  const query = { numofmessages: count, visibilitytimeout: invisibleS };
  const answer = await send(credential, { ...requestOf(at, "GET", "messages"), query });
  return messagesOf(await xmlOf(answer)).map((one) => ({
    ...messageOf(one),
    popReceipt: childText(one, "PopReceipt"),
    invisibleMs: msUntil(answer, childText(one, "TimeNextVisible")),
  }));
}

/** Change a message's text (null: leave it), and for how long it is invisible from now on. */
export async function updateMessage(
  credential: Credential,
  at: QueueAt,
  message: { readonly id: string; readonly popReceipt: string },
  change: { readonly text: string | null; readonly invisibleS: number },
): Promise<Held> {
  const query = { popreceipt: message.popReceipt, visibilitytimeout: change.invisibleS };
  const body = change.text === null ? {} : bodyOf(change.text);
  const answer = await send(credential, { ...requestOf(at, "PUT", "messages", message.id), query, ...body });
  return {
    popReceipt: answer.headers.get("x-ms-popreceipt") ?? "",
    invisibleMs: msUntil(answer, answer.headers.get("x-ms-time-next-visible") ?? ""),
  };
}

export async function deleteMessage(
  credential: Credential,
  at: QueueAt,
  message: { readonly id: string; readonly popReceipt: string },
): Promise<void> {
  await send(credential, { ...requestOf(at, "DELETE", "messages", message.id), query: { popreceipt: message.popReceipt } });
}

export async function clearQueue(credential: Credential, at: QueueAt): Promise<void> {
  await send(credential, requestOf(at, "DELETE", "messages"));
}

/** Return the document that puts a text into a queue. */
export function messageDocument(text: string): string {
  const escaped = text.replace(/[&<>\r]/g, (char) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;" })[char] ?? char);
  return `<?xml version="1.0" encoding="utf-8"?><QueueMessage><MessageText>${escaped}</MessageText></QueueMessage>`;
}

function bodyOf(text: string): Pick<DataRequest, "body" | "headers"> {
  return { body: messageDocument(text), headers: { "content-type": "application/xml" } };
}

function requestOf(at: QueueAt, method: DataRequest["method"], ...rest: readonly string[]): DataRequest {
  return { method, service: "queue", account: at.account, path: pathOf(at.queue, ...rest) };
}

async function xmlOf(answer: Response): Promise<Element> {
  const text = (await answer.text()).replace(/^\uFEFF/, "");
  return new DOMParser().parseFromString(text, "application/xml").documentElement;
}

function messagesOf(root: Element): Element[] {
  return [...root.getElementsByTagName("QueueMessage")];
}

function messageOf(one: Element): Message {
  return {
    id: childText(one, "MessageId"),
    text: childText(one, "MessageText"),
    dequeueCount: Number(childText(one, "DequeueCount")),
    insertedTime: isoOf(childText(one, "InsertionTime")),
    expiresTime: isoOf(childText(one, "ExpirationTime")),
  };
}

function childText(element: Element, name: string): string {
  return [...element.children].find((one) => one.tagName === name)?.textContent ?? "";
}

function isoOf(rfc1123: string): string {
  const at = new Date(rfc1123);
  return Number.isNaN(at.getTime()) ? "" : at.toISOString();
}

// The server's clock counts on both sides: that of this computer may be wrong.
function msUntil(answer: Response, rfc1123: string): number {
  const now = new Date(answer.headers.get("date") ?? Date.now()).getTime();
  const at = new Date(rfc1123).getTime();
  return Number.isNaN(at) ? 0 : Math.max(0, at - now);
}
