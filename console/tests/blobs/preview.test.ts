import { describe, expect, it } from "vitest";

import { asText, hexLines, imageType } from "../../src/views/blobs/preview_kinds";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe("previews", () => {
  it("know images by their bytes, and no type that runs something", () => {
    expect(imageType(new Uint8Array([0xff, 0xd8, 0xff, 0xe0]))).toBe("image/jpeg");
    expect(imageType(bytes("GIF89a"))).toBe("image/gif");
    expect(imageType(bytes("RIFF0000WEBPVP8 "))).toBe("image/webp");
    for (const text of ["<svg xmlns='http://www.w3.org/2000/svg'/>", "<html>", "RIFF0000WAVE", ""]) expect(imageType(bytes(text))).toBeNull();
  });

  it("tell a text from other bytes, also where it is cut inside a character", () => {
    expect(asText(bytes("grüße").slice(0, 3), true)).toBe("gr");
    expect(asText(bytes("grüße").slice(0, 3), false)).toBeNull();
    expect(asText(new Uint8Array([0, 1]), false)).toBeNull();
    expect(asText(new Uint8Array([0xff, 0xfe]), false)).toBeNull();
  });

  it("write bytes as numbers", () => {
    expect(hexLines(bytes("A\n"))).toMatch(/^00000000 {2}41 0a +A\.$/);
  });
});
