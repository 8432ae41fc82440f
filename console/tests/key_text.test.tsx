import { render } from "preact";
import { beforeEach, expect, test } from "vitest";

import { importKey } from "../src/protocol/signing";
import { keepKeyText, keyText } from "../src/state/key_text";
import { server, session, signOut } from "../src/state/session";
import { partsOfConnectionString } from "../src/state/sign_in";
import { texts } from "../src/texts";
import { Connect } from "../src/views/overview/connect";
import given from "./vectors.json";

beforeEach(async () => {
  document.body.innerHTML = "";
  server.value = {
    version: "1", development_account: null, issuer: null, console_url: null, idle_minutes: 30, has_test_clock: false,
    services: [{ name: "blob", url: "http://127.0.0.1:10000", port: 10000 }],
  };
  keepKeyText(given.key);
  session.value = { credential: { kind: "key", account: "acc", signer: await importKey(given.key) }, who: null };
  render(<Connect />, document.body);
});

function button(name: string): HTMLButtonElement {
  const found = [...document.querySelectorAll("button")].find((one) => one.textContent === name);
  if (!found) throw new Error(`no button ${name}`);
  return found;
}

async function press(name: string): Promise<void> {
  button(name).click();
  await new Promise((resolve) => setTimeout(resolve));
}

test("the key is in the document only while it is shown", async () => {
  expect(document.documentElement.outerHTML).not.toContain(given.key);
  await press(texts.overview.showKey);
  expect(document.body.textContent).toContain(`AccountKey=${given.key};BlobEndpoint=http://127.0.0.1:10000/acc;`);
  await press(texts.overview.hideKey);
  expect(document.documentElement.outerHTML).not.toContain(given.key);
});

test("signing out forgets the key's text", () => {
  signOut();
  expect(keyText()).toBeNull();
  expect(session.value).toBeNull();
});

test("a connection string pasted as a key is taken apart", () => {
  expect(partsOfConnectionString(`AccountName=a;AccountKey=${given.key};`)).toEqual({ account: "a", key: given.key });
  expect(partsOfConnectionString(given.key)).toBeNull();
});
