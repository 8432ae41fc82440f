// What a person types into a form stays while the file is read again; what was not touched follows it.

import { render } from "preact";
import { expect, test } from "vitest";

import type { NodeProperties } from "../../src/protocol/files/nodes";
import { session } from "../../src/state/session";
import { SmbForm } from "../../src/views/files/node_forms";

const credential = { kind: "bearer", token: "" } as const;
const place = { credential, account: "shop", share: "s", path: ["f"] } as const;

function propertiesAt(creation: string, lastWrite: string): NodeProperties {
  return { etag: lastWrite, smb: { attributes: "Archive", creation, lastWrite } } as unknown as NodeProperties;
}

test("a draft outlives a poll", async () => {
  session.value = { credential, who: null };
  const root = document.createElement("div");
  const draw = (properties: NodeProperties): void => {
    render(<SmbForm place={place} isDirectory={false} properties={properties} changed={() => undefined} />, root);
  };
  const values = (): string[] => [...root.querySelectorAll<HTMLInputElement>("input:not([type=checkbox])")].map((one) => one.value);
  draw(propertiesAt("1", "2"));
  expect(values()).toEqual(["1", "2"]);
  const field = root.querySelector<HTMLInputElement>("input:not([type=checkbox])");
  if (field) field.value = "typed";
  field?.dispatchEvent(new Event("input", { bubbles: true }));
  await Promise.resolve();
  draw(propertiesAt("3", "4"));
  expect(values()).toEqual(["typed", "4"]);
});
