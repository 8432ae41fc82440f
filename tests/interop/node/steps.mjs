// What the scripts share: clients of the server under test, and steps printed as JSON lines.
//
// A script gets the connection string as its first argument. Each step prints
// {"step": name, "value": what it gave} or {"step": name, "refused": [status, code]}.

import { createHash } from "node:crypto";
import { BlobServiceClient, StorageSharedKeyCredential } from "@azure/storage-blob";

const connectionString = process.argv[2];
// A failure is to be seen, not to be tried again.
const options = { retryOptions: { maxTries: 1 } };

export const service = BlobServiceClient.fromConnectionString(connectionString, options);
export const credential = service.credential;
if (!(credential instanceof StorageSharedKeyCredential)) throw new Error("no account key");

/** A client without credentials, or with those in the URL. */
export function without(Client, url) {
  return new Client(url, undefined, options);
}

/** A new container. */
export async function container(name, settings) {
  const client = service.getContainerClient(name);
  await client.create(settings);
  return client;
}

/** Do something and print what came of it; gives the value back, undefined when refused. */
export async function step(name, action) {
  let value;
  try {
    value = await action();
  } catch (error) {
    if (!error.statusCode) throw error;
    const code = error.code ?? error.details?.errorCode ?? null;
    console.log(JSON.stringify({ step: name, refused: [error.statusCode, code] }));
    return undefined;
  }
  console.log(JSON.stringify({ step: name, value: value ?? null }));
  return value;
}

/** The HTTP status of an answer. */
export function status(answer) {
  return answer._response.status;
}

/** All of a download, as text. */
export async function text(answer) {
  const pieces = [];
  for await (const piece of answer.readableStreamBody) pieces.push(piece);
  return Buffer.concat(pieces).toString("utf8");
}

/** Bytes that look random and are the same every time. */
export function bytes(size, seed) {
  const made = Buffer.alloc(size);
  let state = seed >>> 0 || 1;
  for (let at = 0; at + 4 <= size; at += 4) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    made.writeUInt32LE(state, at);
  }
  return made;
}

/** A digest to compare bodies by. */
export function sha256(data) {
  return createHash("sha256").update(data).digest("hex");
}
