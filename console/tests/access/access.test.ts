import { afterEach, describe, expect, it, vi } from "vitest";

import { policiesOf } from "../../src/protocol/blob/containers";
import { delegatedStringToSign, delegationKey, endAfter, makeDelegatedSas } from "../../src/protocol/blob/delegation";
import { signedQuery } from "../../src/protocol/blob/links";
import { parseXml } from "../../src/protocol/shared/xml";
import { postApi } from "../../src/protocol/requests";
import { importKey } from "../../src/protocol/signing";
import { listPlaces, readPolicies } from "../../src/protocol/across/stored_policies";
import { advance, orderFault } from "../../src/protocol/test_server";

afterEach(() => { vi.unstubAllGlobals(); });

const KEY = { oid: "alice", tid: "t", start: "2026-01-01T00:00:00Z", expiry: "2026-01-02T00:00:00Z", service: "b", version: "2025-11-05" };
const ASKED = { account: "vault", container: "c", blob: "a b/ö", rights: ["w", "r"], expiry: "2026-01-01T01:00:00Z" } as const;

function answering(...bodies: readonly string[]) {
  const left = [...bodies];
  const asked = vi.fn<typeof fetch>(() => Promise.resolve(new Response(left.shift() ?? "")));
  vi.stubGlobal("fetch", asked);
  return asked;
}

function urlOf(call: Parameters<typeof fetch> | undefined): URL {
  return new URL(String(call?.[0]));
}

describe("a link by a token", () => {
  it("signs the fields of the delegation key behind the resource", () => {
    const text = delegatedStringToSign(ASKED, KEY, "rw", "b");
    const key = "alice\nt\n2026-01-01T00:00:00Z\n2026-01-02T00:00:00Z\nb\n2025-11-05";
    expect(text).toBe(`rw\n\n2026-01-01T01:00:00Z\n/blob/vault/c/a b/ö\n${key}${"\n".repeat(8)}2025-11-05\nb${"\n".repeat(7)}`);
  });

  it("asks for a key that ends when the link does", async () => {
    const value = btoa("k".repeat(32));
    const asked = answering(
      `<UserDelegationKey><SignedOid>alice</SignedOid><SignedTid>t</SignedTid><SignedStart>${KEY.start}</SignedStart>
      <SignedExpiry>${KEY.expiry}</SignedExpiry><SignedService>b</SignedService><SignedVersion>2025-11-05</SignedVersion><Value>${value}</Value></UserDelegationKey>`,
    );
    const key = await delegationKey({ kind: "bearer", token: "t" }, "vault", ASKED.expiry);
    expect(urlOf(asked.mock.calls[0]).pathname + urlOf(asked.mock.calls[0]).search).toBe("/blob/vault/?restype=service&comp=userdelegationkey");
    expect(await (asked.mock.calls[0]?.[1]?.body as Blob).text()).toContain(`<Expiry>${ASKED.expiry}</Expiry>`);
    expect(key).toMatchObject(KEY);
    expect(key.signer.extractable).toBe(false);
    const read = new URLSearchParams(await makeDelegatedSas(ASKED, key));
    expect([read.get("skoid"), read.get("sp"), read.get("sr"), read.get("ske")]).toEqual(["alice", "rw", "b", KEY.expiry]);
    expect(read.get("sig")).toMatch(/^[A-Za-z0-9+/]{43}=$/);
  });

  it("is not made of a signature, nor for longer than a delegation key lives", async () => {
    const asked = answering();
    const place = { account: "vault", container: "c" };
    const sas = { kind: "sas", account: "vault", service: "blob", path: "/c", token: "sig=A" } as const;
    expect(await signedQuery({ ...place, credential: sas }, ["r"], 1000)).toBe("needs_key");
    expect(await signedQuery({ ...place, credential: { kind: "bearer", token: "t" } }, ["r"], 8 * 86_400_000)).toBe("too_long");
    expect(asked).not.toHaveBeenCalled();
  });

  it("writes its end in whole seconds", () => {
    expect(endAfter(500, 60_000)).toBe("1970-01-01T00:01:00Z");
  });
});

describe("stored policies", () => {
  const acl = "<SignedIdentifiers><SignedIdentifier><Id>&lt;p&gt;</Id><AccessPolicy><Expiry>2030-01-01</Expiry></AccessPolicy></SignedIdentifier><SignedIdentifier><Id>q</Id></SignedIdentifier></SignedIdentifiers>";

  it("are read with what they leave out", () => {
    expect(policiesOf(parseXml(acl))).toEqual([
      { id: "<p>", start: "", expiry: "2030-01-01", rights: "" },
      { id: "q", start: "", expiry: "", rights: "" },
    ]);
  });

  it("are asked for as each service wants it", async () => {
    const credential = { kind: "bearer", token: "t" } as const;
    const asked = answering(acl, acl, acl, acl, "<EnumerationResults><Shares><Share><Name>s</Name></Share></Shares><NextMarker>m</NextMarker></EnumerationResults>");
    for (const service of ["blob", "queue", "table", "file"] as const) await readPolicies(credential, { service, account: "vault", name: "a" });
    expect(asked.mock.calls.map((call) => urlOf(call).pathname + urlOf(call).search)).toEqual([
      "/blob/vault/a?restype=container&comp=acl",
      "/queue/vault/a?comp=acl",
      "/table/vault/a?comp=acl",
      "/file/vault/a?restype=share&comp=acl",
    ]);
    expect(await listPlaces(credential, "file", "vault", "", new AbortController().signal)).toEqual({ rows: ["s"], next: "m" });
    expect(urlOf(asked.mock.calls[4]).search).toBe("?comp=list&maxresults=50");
  });
});

describe("what is posted", () => {
  it("is signed with its length, and in no address", async () => {
    const asked = answering("{}");
    const signer = await importKey(btoa("secret"));
    await postApi("access/explain", { sas: "sv=1&sig=A" }, { kind: "key", account: "vault", signer });
    const [url, sent] = asked.mock.calls[0] ?? [];
    expect(String(url)).not.toContain("sig");
    expect(new Headers(sent?.headers).get("authorization")).toMatch(/^SharedKey vault:/);
  });

  it("says why a test server refuses, in its words", async () => {
    vi.stubGlobal("fetch", vi.fn(() => Promise.resolve(new Response(JSON.stringify({ error: "advance_s must lie between 0 and 9." }), { status: 400 }))));
    await expect(advance(-1)).rejects.toThrow("advance_s must lie between 0 and 9.");
  });

  it("adds a fault behind those that there are", async () => {
    const plan = { rules: [{ operation: "Get Blob", fault: "cut", probability: 0.5 }], seed: 7 };
    const asked = answering(JSON.stringify({ plan, counts: [] }), JSON.stringify({ plan, counts: [] }));
    await orderFault({ operation: "Put Blob", fault: "busy" });
    const sent = JSON.parse(await (asked.mock.calls[1]?.[1]?.body as Blob).text()) as typeof plan;
    expect(sent).toEqual({ rules: [...plan.rules, { operation: "Put Blob", fault: "busy" }], seed: 7 });
  });
});
