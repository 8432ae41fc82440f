import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { authorizationUrl, finishReturn, isReturn } from "../src/state/oidc";

const ISSUER = { name: "Login", authorization_endpoint: "https://login.example/authorize?tenant=1", client_id: "me", scope: "openid" };
const LEAVING = { state: "s", nonce: "n", verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", address: "/requests" };

function idToken(nonce: string): string {
  return `e30.${btoa(JSON.stringify({ nonce })).replace(/=+$/, "")}.x`;
}

beforeEach(() => {
  history.replaceState(null, "", "/?code=c&state=s");
  sessionStorage.setItem("strongroom-leaving", JSON.stringify(LEAVING));
});
afterEach(() => { vi.unstubAllGlobals(); });

test("the issuer is asked with the challenge of RFC 7636, appendix B", async () => {
  const query = new URL(await authorizationUrl(ISSUER, LEAVING)).searchParams;
  expect(query.get("code_challenge")).toBe("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
  expect([query.get("tenant"), query.get("response_type"), query.get("state"), query.get("nonce")]).toEqual(["1", "code", "s", "n"]);
});

test("the answer to a sign-in that was not begun is refused, and asks nothing", async () => {
  const asked = vi.fn();
  vi.stubGlobal("fetch", asked);
  history.replaceState(null, "", "/?code=c&state=another");
  expect(isReturn()).toBe(true);
  await expect(finishReturn()).rejects.toThrow("no sign-in");
  expect(asked).not.toHaveBeenCalled();
  expect(location.search).toBe("");
});

test("an id_token that is none is refused, and none at all is not needed", async () => {
  vi.stubGlobal("fetch", vi.fn(() => Promise.resolve(new Response(JSON.stringify({ access_token: "t", expires_in_s: 60, id_token: "an.id.token" })))));
  await expect(finishReturn()).rejects.toThrow("no sign-in");
  sessionStorage.setItem("strongroom-leaving", JSON.stringify(LEAVING));
  history.replaceState(null, "", "/?code=c&state=s");
  const who = { kind: "bearer", account: "a", name: "alice", is_operator: false, may_see: [], scope: null };
  const answers = [{ access_token: "t", expires_in_s: 60, id_token: null }, who].map((one) => new Response(JSON.stringify(one)));
  vi.stubGlobal("fetch", vi.fn(() => Promise.resolve(answers.shift() ?? Response.error())));
  await finishReturn();
});

test("a token for another nonce is refused", async () => {
  const given = { access_token: "t", expires_in_s: 60, id_token: idToken("other") };
  vi.stubGlobal("fetch", vi.fn(() => Promise.resolve(new Response(JSON.stringify(given)))));
  await expect(finishReturn()).rejects.toThrow("no sign-in");
});

test("the return deletes what was kept, cleans the address, and signs in", async () => {
  const given = { access_token: "t", expires_in_s: 60, id_token: idToken("n") };
  const who = { kind: "bearer", account: "a", name: "alice", is_operator: false, may_see: [], scope: null };
  const answers = [given, who].map((one) => new Response(JSON.stringify(one)));
  const asked = vi.fn<typeof fetch>(() => Promise.resolve(answers.shift() ?? Response.error()));
  vi.stubGlobal("fetch", asked);
  await finishReturn();
  expect(sessionStorage.length).toBe(0);
  expect(`${location.pathname}${location.search}`).toBe("/requests");
  expect(new Headers(asked.mock.calls[1]?.[1]?.headers).get("authorization")).toBe("Bearer t");
});
