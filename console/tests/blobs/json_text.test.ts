import { describe, expect, it } from "vitest";

import { indented, isJson, jsonLines, looksLikeJson, SHOWN_CHARS_MAX } from "../../src/views/blobs/json_text";

describe("JSON", () => {
  it("gets line ends and indentation", () => {
    expect(indented('{"a":[1,{"b":null}],"c":{},"d":[ ]}')).toBe('{\n  "a": [\n    1,\n    {\n      "b": null\n    }\n  ],\n  "c": {},\n  "d": []\n}');
    expect(indented('[ 1 ,\n 2 ]')).toBe("[\n  1,\n  2\n]");
  });

  it("keeps numbers, strings and repeated keys as they are written", () => {
    const text = '{"n":12345678901234567890,"n":1e400,"s":"a{b,\\"c:\\\\"}';
    expect(indented(text).replace(/\n */g, "").replaceAll(": ", ":")).toBe(text);
  });

  it("may be cut anywhere", () => {
    expect(indented('{"a":"b')).toBe('{\n  "a": "b');
    expect(indented('{"a":[')).toBe('{\n  "a": [\n    ');
    expect(indented("]]}")).toBe("\n]\n]\n}");
  });

  it("stays bounded, however deep it is nested", () => {
    expect(indented("[".repeat(1_000_000)).length).toBeLessThan(SHOWN_CHARS_MAX + 200);
  });

  it("is told from other texts", () => {
    expect(isJson(' {"a": 1} ')).toBe(true);
    for (const text of ["{no", "12", "", '{"a":1}{"b":2}']) expect(isJson(text)).toBe(false);
    expect(looksLikeJson("a.json", "")).toBe(true);
    expect(looksLikeJson("a", "application/problem+json; charset=utf-8")).toBe(true);
    expect(looksLikeJson("a.txt", "text/plain")).toBe(false);
  });
});

describe("lines of JSON", () => {
  it("are records of their own", () => {
    expect(jsonLines('{"a":1}\n\n{"a":2}\n', false)).toEqual(['{\n  "a": 1\n}', '{\n  "a": 2\n}']);
    expect(jsonLines('{"a":1}\n{"a":2}\n{"a":', true)).toHaveLength(2);
    expect(jsonLines("[1]\n".repeat(500), false)).toHaveLength(100);
  });

  it("are not a single object, nor lines of something else", () => {
    expect(jsonLines('{\n"a":1\n}', false)).toBeNull();
    expect(jsonLines('{"a":1}\n', false)).toBeNull();
    expect(jsonLines('{"a":1}\nplain\n', false)).toBeNull();
  });
});
