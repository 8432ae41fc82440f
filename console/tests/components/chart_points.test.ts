import { expect, it } from "vitest";

import { lonely } from "../../src/components/chart_points";

it("finds the values that no line reaches", () => {
  expect(lonely([1, null, 2, null, 3, 4, null])).toEqual([0, 2]);
  expect(lonely([null, 5])).toEqual([1]);
  expect(lonely([undefined, 0, undefined])).toEqual([1]);
  expect(lonely([1, 2, null])).toBeNull();
  expect(lonely([])).toBeNull();
});
