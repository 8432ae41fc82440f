// The ways to sign in. Each raises ServiceError, or an Error whose text a person can read.

import type { Session as ServerFacts, Who } from "../api/documents";
import type { SasCredential } from "../protocol/credentials";
import { ServiceError } from "../protocol/errors";
import { askApi, type DataRequest, send } from "../protocol/requests";
import { readSasUrl } from "../protocol/sas_url";
import { importKey } from "../protocol/signing";
import { texts } from "../texts";
import { keepKeyText } from "./key_text";
import { server, session, signedOutBecause } from "./session";

/** Sign in with an account's key: the server must accept a signature made with it. */
export async function signInWithKey(account: string, key: string): Promise<void> {
  const signer = await importKey(key).catch(() => {
    throw new Error(texts.signIn.notAKey);
  });
  const credential = { kind: "key", account, signer } as const;
  const who = await askApi<Who>(credential, "who");
  keepKeyText(key);
  begin({ credential, who });
}

export async function signInWithToken(token: string): Promise<void> {
  const credential = { kind: "bearer", token } as const;
  begin({ credential, who: await askApi<Who>(credential, "who") });
}

/** Sign in with a SAS URL: the service must find its signature right. */
export async function signInWithSas(text: string): Promise<void> {
  server.value ??= await askApi<ServerFacts>(null, "session");
  const read = readSasUrl(text, server.value.services);
  if (typeof read === "string") throw new Error(texts.signIn.sasProblems[read]);
  await prove(read);
  begin({ credential: read, who: null });
}

/** What stands in a connection string that was pasted instead of a key; null: it is none. */
export function partsOfConnectionString(text: string): { readonly account: string; readonly key: string } | null {
  const value = (name: string): string | undefined =>
    text.split(";").find((one) => one.trim().startsWith(`${name}=`))?.trim().slice(name.length + 1);
  const account = value("AccountName");
  const key = value("AccountKey");
  return account && key ? { account, key } : null;
}

function begin(value: NonNullable<typeof session.value>): void {
  signedOutBecause.value = null;
  session.value = value;
}

// The signature is right, though it does not permit what was asked; or what it names is not there.
const RIGHT_CODES = ["AuthorizationPermissionMismatch", "AuthorizationResourceTypeMismatch"];
const RIGHT_STATUSES = [404, 416];

async function prove(credential: SasCredential): Promise<void> {
  try {
    await send(credential, smallestRead(credential));
  } catch (error) {
    const isRight =
      error instanceof ServiceError && (RIGHT_CODES.includes(error.code) || RIGHT_STATUSES.includes(error.status));
    if (!isRight) throw error;
  }
}

function smallestRead({ service, account, path }: SasCredential): DataRequest {
  const read = { method: "GET", service, account, path } as const;
  const depth = path.split("/").length - 1;
  if (service === "table") {
    const headers = { accept: "application/json;odata=nometadata" };
    return depth === 0 ? { ...read, path: "/Tables", query: { $top: 1 }, headers } : { ...read, query: { $top: 1 }, headers };
  }
  if (depth === 0) return { ...read, query: { comp: "list", maxresults: 1 } };
  if (service === "queue") return { ...read, query: { comp: "metadata" } };
  if (depth > 1) return { ...read, headers: { range: "bytes=0-0" } };
  const restype = service === "blob" ? "container" : "directory";
  return { ...read, query: { restype, comp: "list", maxresults: 1 } };
}
