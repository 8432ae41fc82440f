// Who opens a dialog by a key goes on typing: the field has the focus before the next key.

import { signal } from "@preact/signals";
import { render } from "preact";
import { afterEach, beforeEach, expect, test } from "vitest";

import { ConfirmByName } from "../../src/components/dialog";
import { texts } from "../../src/texts";

const root = document.createElement("div");
const isOpen = signal(false);
const polled = signal("1");

function View() {
  return (
    <main>
      <button type="button" onClick={() => { isOpen.value = true; }}>{polled.value}</button>
      {isOpen.value && (
        <ConfirmByName title={`Delete ${polled.value}?`} risk="" name="photos" onClose={() => { isOpen.value = false; }} act={() => Promise.resolve()} />
      )}
    </main>
  );
}

/** What ran until the browser gives the page its next key. */
async function nextKey(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}

function field(): HTMLInputElement {
  const label = [...document.querySelectorAll("label")].find((one) => one.textContent === texts.dialogs.typeTheName);
  return document.getElementById(label?.htmlFor ?? "") as HTMLInputElement;
}

beforeEach(async () => {
  document.body.append(root);
  isOpen.value = false;
  render(<View />, root);
  const button = root.querySelector("button");
  button?.focus();
  button?.click();
  await nextKey();
});

afterEach(() => {
  render(null, root);
});

test("the field for the name has the focus when the dialog opens", () => {
  expect(root.querySelector("dialog")?.open).toBe(true);
  expect(document.activeElement).toBe(field());
});

test("a poll does not move the focus out of the field", async () => {
  const typed = field();
  polled.value = "2";
  await nextKey();
  expect(root.querySelector("h2")?.textContent).toBe("Delete 2?");
  expect(document.activeElement).toBe(typed);
});

test("the focus goes back to what opened the dialog", async () => {
  isOpen.value = false;
  await nextKey();
  expect(document.activeElement).toBe(root.querySelector("button"));
});
