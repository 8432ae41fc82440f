import { describe, expect, it } from "vitest";

import { fromBase64, toBase64 } from "../../src/protocol/base64_text";
import type { SasCredential } from "../../src/protocol/credentials";
import { messageDocument } from "../../src/protocol/queues";
import { missingRight, onlyName } from "../../src/protocol/rights";

describe("messageDocument", () => {
  it("gives back the text when it is parsed, ends of lines included", () => {
    const text = "a <b>&amp; \"'\r\n\tü \u{1F512}]]>";
    const document = messageDocument(text);
    expect(document).not.toContain("<b>");
    expect(document).not.toContain("\r");
    expect(document).toContain("&#13;\n");
    expect(document).toContain("]]&gt;");
  });
});

describe("fromBase64", () => {
  it("decodes texts only", () => {
    expect(fromBase64(toBase64("grün \u{1F512}"))).toBe("grün \u{1F512}");
    expect(fromBase64("hello")).toBeNull();
    expect(fromBase64(btoa("\u00ff\u00fe"))).toBeNull();
    expect(fromBase64(btoa("a\u0000b"))).toBeNull();
    expect(fromBase64("")).toBeNull();
  });
});

describe("missingRight", () => {
  const sas = (token: string, service: SasCredential["service"] = "queue", path = ""): SasCredential => ({
    kind: "sas", account: "a", service, path, token,
  });

  it("names the first letter that a signature lacks", () => {
    expect(missingRight(sas("ss=bq&srt=sco&sp=rl&sig=x", "blob"), "queue", "l")).toBeNull();
    expect(missingRight(sas("ss=bq&srt=sco&sp=r&sig=x", "blob"), "queue", "rl")).toBe("l");
    expect(missingRight(sas("ss=b&srt=sco&sp=rl&sig=x", "blob"), "queue", "l")).toBe("service");
    expect(missingRight(sas("sp=r&sig=x", "table", "/t"), "queue", "")).toBe("service");
  });

  it("leaves it to the service where a stored policy has the rights", () => {
    expect(missingRight(sas("si=policy&sig=x", "queue", "/orders"), "queue", "l")).toBeNull();
  });

  it("knows the one thing that a signature is for", () => {
    expect(onlyName(sas("sp=r&sig=x", "queue", "/orders"))).toBe("orders");
    expect(onlyName(sas("tn=Books&sp=r&sig=x", "table", "/books()"))).toBe("Books");
    expect(onlyName(sas("ss=q&sp=rl&sig=x", "queue", "/orders"))).toBeNull();
  });
});
