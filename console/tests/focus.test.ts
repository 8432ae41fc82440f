import { beforeAll, beforeEach, expect, test } from "vitest";

import { startFocus } from "../src/state/focus";

beforeAll(startFocus);
beforeEach(() => {
  document.body.innerHTML = '<main id="main" tabindex="-1"><ul><li id="thing"><span id="acts"><button id="act">Break</button></span></li></ul></main><button id="other">Other</button>';
});

const byId = (id: string): HTMLElement => document.getElementById(id) as HTMLElement;
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

test("the focus of what is gone goes to what held it, which is no control", async () => {
  byId("act").focus();
  byId("acts").remove();
  await settled();
  expect(document.activeElement).toBe(byId("thing"));
  byId("other").focus();
  expect(byId("thing").hasAttribute("tabindex")).toBe(false);
});

test("a focus that went elsewhere stays there", async () => {
  byId("act").focus();
  byId("other").focus();
  byId("acts").remove();
  await settled();
  expect(document.activeElement).toBe(byId("other"));
});

test("what could be focused before can be focused afterwards", async () => {
  byId("act").focus();
  document.querySelector("ul")?.remove();
  await settled();
  expect(document.activeElement).toBe(byId("main"));
  byId("main").blur();
  expect(byId("main").getAttribute("tabindex")).toBe("-1");
});
