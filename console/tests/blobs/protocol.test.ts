import { describe, expect, it } from "vitest";

import { readBlobPage } from "../../src/protocol/blob/listing";
import { blobPath } from "../../src/protocol/blob/place";
import { isForBlobs, missingRight, reachOf } from "../../src/protocol/blob/rights";
import { makeSas, readDuration, sasStringToSign } from "../../src/protocol/blob/sas";
import { Slots } from "../../src/protocol/slots";
import { blockId, blockSizeFor } from "../../src/protocol/blob/upload";
import { escapeXml } from "../../src/protocol/shared/xml";
import type { KeyCredential, SasCredential } from "../../src/protocol/credentials";
import { importKey } from "../../src/protocol/signing";

const MIB = 1024 * 1024;

async function key(): Promise<KeyCredential> {
  return { kind: "key", account: "vault", signer: await importKey(btoa("secret")) };
}

function sas(token: string, path = "", service: SasCredential["service"] = "blob"): SasCredential {
  return { kind: "sas", account: "vault", service, path, token };
}

describe("lists", () => {
  it("reads blobs, folders, encoded names and tags", () => {
    const page = readBlobPage(
      `<EnumerationResults><Blobs>
        <Blob><Name>a&lt;b&gt;</Name><Snapshot>2026-01-01T00:00:00.0000000Z</Snapshot><Properties>
          <Last-Modified>Sat, 28 Nov 2026 06:44:07 GMT</Last-Modified><Content-Length>7</Content-Length>
          <LeaseState>leased</LeaseState></Properties>
          <Tags><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tags></Blob>
        <BlobPrefix><Name Encoded="true">x%EF%BF%BE/</Name></BlobPrefix>
      </Blobs><NextMarker>m 1</NextMarker></EnumerationResults>`,
    );
    const [blob, folder] = page.rows;
    expect(blob).toMatchObject({ name: "a<b>", sizeBytes: 7, leaseState: "leased", isFolder: false, tags: [["k", "v"]] });
    expect(blob?.modified).toBe("2026-11-28T06:44:07.000Z");
    expect(folder).toMatchObject({ name: "x\uFFFE/", isFolder: true, modified: "" });
    expect(page.next).toBe("m 1");
  });

  it("refuses what is no XML", () => {
    expect(() => readBlobPage("not XML <")).toThrow();
  });

  it("escapes what is written into XML", () => {
    expect(escapeXml(`<a b="c">&'`)).not.toMatch(/[<>"']/);
  });
});

describe("addresses", () => {
  const place = { credential: sas(""), account: "vault", container: "c" };

  it("encodes a blob's name as a whole", () => {
    expect(blobPath({ ...place, blob: "a/../b?c#d" })).toBe("/c/a%2F..%2Fb%3Fc%23d");
  });

  it("refuses names that a browser takes for the folder above", () => {
    for (const blob of [".", ".."]) expect(() => blobPath({ ...place, blob })).toThrow();
    expect(blobPath({ ...place, blob: "..." })).toBe("/c/...");
  });
});

describe("SAS", () => {
  it("signs the names as they are, and the right generation", async () => {
    const signed = sasStringToSign({ credential: await key(), container: "c", blob: "a b/ö" }, "r", "2030-01-01T00:00:00Z", "b");
    expect(signed).toBe(`r\n\n2030-01-01T00:00:00Z\n/blob/vault/c/a b/ö\n\n\n\n2025-11-05\nb${"\n".repeat(7)}`);
  });

  it("writes rights in the service's order, and an end without milliseconds", async () => {
    const token = await makeSas({ credential: await key(), container: "c", rights: ["l", "w", "r"], validMs: 60_500, nowMs: 0 });
    const read = new URLSearchParams(token);
    expect([read.get("sp"), read.get("sr"), read.get("se")]).toEqual(["rwl", "c", "1970-01-01T00:01:00Z"]);
    expect(read.get("sig")).toMatch(/^[A-Za-z0-9+/]{43}=$/);
  });

  it("reads times that people write", () => {
    expect(["30 min", "1 h", "7d", "2 hours", "3"].map(readDuration)).toEqual([1_800_000, 3_600_000, 604_800_000, 7_200_000, 10_800_000]);
    for (const text of ["", "0 h", "soon", "-1 h", "1.5 h", "1234567 d"]) expect(readDuration(text)).toBeNull();
  });
});

describe("rights", () => {
  it("names what a SAS lacks", () => {
    expect(missingRight(sas("sp=r&sr=c&sig=x"), "list")).toBe("l");
    expect(missingRight(sas("sp=rl&sr=c&sig=x"), "list")).toBeNull();
    expect(missingRight(sas("sp=rl&sr=c&sig=x"), "create")).toBe("cw");
    expect(missingRight(sas("sp=rl&sr=c&sig=x"), "readAccess")).toBe("key");
    expect(missingRight(sas("sp=rwdlacx&ss=b&srt=o&sig=x"), "listContainers")).toBe("l");
    expect(missingRight(sas("sp=rwdlacx&ss=b&srt=so&sig=x"), "listContainers")).toBeNull();
  });

  it("knows nothing of what a stored policy permits", () => {
    expect(missingRight(sas("si=policy&sr=c&sig=x"), "list")).toBeNull();
  });

  it("knows which service and which place a SAS is for", () => {
    expect(isForBlobs(sas("sp=r", "/q", "queue"))).toBe(false);
    expect(isForBlobs(sas("ss=bq&sp=r", "", "queue"))).toBe(true);
    expect(reachOf(sas("sp=r", "/c/a%20b/d"))).toEqual({ container: "c", blob: "a b/d" });
    expect(reachOf(sas("ss=b&sp=r", "/c"))).toBeNull();
  });
});

describe("blocks", () => {
  it("are named by their bytes, all in one length", async () => {
    const [one, other] = await Promise.all([blockId(new Uint8Array([1])), blockId(new Uint8Array([2, 3]))]);
    expect(one).not.toBe(other);
    expect([atob(one).length, atob(other).length]).toEqual([32, 32]);
    expect(await blockId(new Uint8Array([1]))).toBe(one);
  });

  it("are as large as 50,000 of them need", () => {
    expect(blockSizeFor(1)).toBe(4 * MIB);
    const size = 4 * 1024 * 1024 * MIB;
    expect(Math.ceil(size / blockSizeFor(size))).toBeLessThanOrEqual(50_000);
  });

  it("are in memory as many as there are slots", async () => {
    const slots = new Slots(1);
    const end = new AbortController();
    const give = await slots.take(end.signal);
    const order: string[] = [];
    const second = slots.take(end.signal).then((next) => { order.push("second"); next(); });
    const left = new AbortController();
    const third = slots.take(left.signal).catch(() => { order.push("left"); });
    left.abort();
    await third;
    expect(order).toEqual(["left"]);
    give();
    give();
    await second;
    expect(order).toEqual(["left", "second"]);
    await slots.take(end.signal);
    const last = slots.take(end.signal);
    end.abort();
    await expect(last).rejects.toThrow();
  });
});
