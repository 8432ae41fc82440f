import { afterEach, describe, expect, it, vi } from "vitest";

import { readName, readRange } from "../../src/protocol/across/download";
import type { KeyCredential, SasCredential } from "../../src/protocol/credentials";
import { readDirectoryPage } from "../../src/protocol/files/directories";
import { readHandles } from "../../src/protocol/files/handles";
import { deleteFile } from "../../src/protocol/files/nodes";
import { endsWithDot, filePath, namesOf, type PathPlace } from "../../src/protocol/files/place";
import { missingFileRight, shareReach } from "../../src/protocol/files/rights";
import { fileSasStringToSign, makeFileSas } from "../../src/protocol/files/sas";
import { readSharePage } from "../../src/protocol/files/shares";
import { LeftBehind, PIECE_BYTES, temporaryName, uploadFile } from "../../src/protocol/files/upload";
import { importKey } from "../../src/protocol/signing";
import { attributesOf, withAttribute } from "../../src/views/files/attributes";
import { readQuota } from "../../src/views/files/quota";
import { lastByte } from "../../src/views/files/ranges";

function sas(token: string, path = ""): SasCredential {
  return { kind: "sas", account: "vault", service: "file", path, token };
}

function place(...path: string[]): PathPlace {
  return { credential: sas("sig=x"), account: "vault", share: "papers", path };
}

async function key(): Promise<KeyCredential> {
  return { kind: "key", account: "vault", signer: await importKey(btoa("secret")) };
}

describe("lists", () => {
  it("reads shares, their snapshots and deleted ones", () => {
    const page = readSharePage(
      `<EnumerationResults><Shares>
        <Share><Name>old</Name><Deleted>true</Deleted><Version>v1</Version><Properties><Quota>5</Quota><RemainingRetentionDays>3</RemainingRetentionDays></Properties></Share>
        <Share><Name>papers</Name><Properties><Last-Modified>Sat, 28 Nov 2026 06:44:07 GMT</Last-Modified><Quota>5120</Quota><LeaseState>leased</LeaseState></Properties></Share>
        <Share><Name>papers</Name><Snapshot>2026-11-28T06:00:00.0000000Z</Snapshot><Properties><Quota>1</Quota></Properties></Share>
      </Shares><NextMarker>m 1</NextMarker></EnumerationResults>`,
    );
    expect(page.rows[0]).toMatchObject({ name: "old", deletedVersion: "v1", remainingDays: "3", quotaGib: 5 });
    expect(page.rows[1]).toMatchObject({ name: "papers", deletedVersion: "", snapshot: "", quotaGib: 5120, leaseState: "leased" });
    expect(page.rows[1]?.modified).toBe("2026-11-28T06:44:07.000Z");
    expect(page.rows[2]).toMatchObject({ name: "papers", snapshot: "2026-11-28T06:00:00.0000000Z" });
    expect(page.next).toBe("m 1");
  });

  it("reads directories and files, also by encoded names", () => {
    const page = readDirectoryPage(
      `<EnumerationResults><Entries>
        <Directory><Name>a&lt;b</Name><FileId>1</FileId><Properties><LastWriteTime>2026-11-28T06:44:07.1234567Z</LastWriteTime></Properties><Attributes>Directory</Attributes></Directory>
        <File><Name Encoded="true">x%EF%BF%BE</Name><Properties><Content-Length>7</Content-Length></Properties><Attributes>ReadOnly | Archive</Attributes></File>
        <File><Name>bare</Name><Properties /></File>
      </Entries><NextMarker /></EnumerationResults>`,
    );
    expect(page.rows).toEqual([
      { isDirectory: true, name: "a<b", sizeBytes: 0, written: "2026-11-28T06:44:07.1234567Z", attributes: "Directory" },
      { isDirectory: false, name: "x\uFFFE", sizeBytes: 7, written: "", attributes: "ReadOnly | Archive" },
      { isDirectory: false, name: "bare", sizeBytes: 0, written: "", attributes: "" },
    ]);
    expect(page.next).toBe("");
  });

  it("reads handles, whose ids have more digits than numbers hold", () => {
    const list = readHandles(
      `<EnumerationResults><Entries><Handle><HandleId>9223372036854775807</HandleId><Path>a/b c.txt</Path><SessionId>1</SessionId>
        <ClientIp>127.0.0.1:5</ClientIp><OpenTime>Sat, 28 Nov 2026 06:44:07 GMT</OpenTime>
        <AccessRightList><AccessRight>Read</AccessRight><AccessRight>Write</AccessRight></AccessRightList></Handle></Entries>
        <NextMarker>more</NextMarker></EnumerationResults>`,
    );
    expect(list.isMore).toBe(true);
    expect(list.rows[0]).toMatchObject({ id: "9223372036854775807", path: "a/b c.txt", client: "127.0.0.1:5", access: ["Read", "Write"] });
  });
});

describe("paths", () => {
  it("encodes each name by itself", () => {
    expect(filePath(place("a b", "c?d#e%.txt"))).toBe("/papers/a%20b/c%3Fd%23e%25.txt");
    expect(filePath(place())).toBe("/papers");
  });

  it("refuses names that a browser takes for the directory above", () => {
    for (const name of [".", ".."]) expect(() => filePath(place("a", name, "b"))).toThrow();
    expect(filePath(place("..."))).toBe("/papers/...");
  });

  it("tells where dots at an end count", () => {
    expect(endsWithDot(["a.", "b"])).toBe(true);
    expect(endsWithDot(["a.b"])).toBe(false);
  });

  it("reads what people write as a path", () => {
    expect(namesOf("/a\\b//c d/")).toEqual(["a", "b", "c d"]);
    expect(namesOf(" /")).toEqual([" "]);
    expect(namesOf("")).toEqual([]);
  });
});

describe("tokens", () => {
  it("say with each request that they read past the permissions of files", async () => {
    const sent = serve(() => 201);
    await deleteFile({ ...place("a"), credential: { kind: "bearer", token: "t" } });
    await deleteFile(place("a"));
    expect(sent.map((one) => one.headers.get("x-ms-file-request-intent"))).toEqual(["backup", null]);
  });
});

describe("rights", () => {
  it("names what a SAS lacks", () => {
    expect(missingFileRight(sas("sp=r&sr=s&sig=x"), "list")).toBe("l");
    expect(missingFileRight(sas("sp=c&sr=s&sig=x"), "create")).toBeNull();
    expect(missingFileRight(sas("sp=c&sr=s&sig=x"), "write")).toBe("w");
    expect(missingFileRight(sas("sp=rwdl&sr=s&sig=x"), "deleteShare")).toBe("key");
    expect(missingFileRight(sas("ss=f&srt=o&sp=rwdl&sig=x"), "listShares")).toBe("l");
    expect(missingFileRight(sas("ss=f&srt=sco&sp=rwdl&sig=x"), "deleteShare")).toBeNull();
  });

  it("knows which share or file a SAS is for", () => {
    expect(shareReach(sas("sr=f&sig=x", "/papers/a%20b/c.txt"))).toEqual({ share: "papers", path: ["a b", "c.txt"] });
    expect(shareReach(sas("sr=s&sig=x", "/papers/"))).toEqual({ share: "papers", path: [] });
    expect(shareReach(sas("ss=f&srt=sco&sig=x", "/papers"))).toBeNull();
  });
});

describe("SAS", () => {
  it("signs the names as they are", async () => {
    const text = fileSasStringToSign({ credential: await key(), share: "papers", path: ["a b", "ö"] }, "2030-01-01T00:00:00Z");
    expect(text).toBe(`r\n\n2030-01-01T00:00:00Z\n/file/vault/papers/a b/ö\n\n\n\n2025-11-05${"\n".repeat(5)}`);
  });

  it("is for one file, to read, until its end", async () => {
    const read = new URLSearchParams(await makeFileSas({ credential: await key(), share: "papers", path: ["a"], validMs: 60_500, nowMs: 0 }));
    expect([read.get("sp"), read.get("sr"), read.get("se")]).toEqual(["r", "f", "1970-01-01T00:01:00Z"]);
    expect(read.get("sig")).toMatch(/^[A-Za-z0-9+/]{43}=$/);
  });
});

interface Sent {
  readonly method: string;
  readonly url: URL;
  readonly headers: Headers;
  readonly sizeBytes: number;
}

/** Answer requests by what `status` says of each; return those that were sent. */
function serve(status: (sent: Sent) => number | Promise<number>): Sent[] {
  const all: Sent[] = [];
  vi.stubGlobal("fetch", async (url: URL, init: RequestInit): Promise<Response> => {
    const body = init.body instanceof Blob ? init.body.size : 0;
    const sent = { method: init.method ?? "", url, headers: new Headers(init.headers), sizeBytes: body };
    all.push(sent);
    const found = await status(sent);
    if (found === 0) throw new TypeError("no network");
    return new Response(null, { status: found, headers: { etag: '"1"' } });
  });
  return all;
}

afterEach(() => { vi.unstubAllGlobals(); });

/** Let pauses between attempts take no time. */
function withoutPauses(): void {
  const later = setTimeout;
  vi.stubGlobal("setTimeout", (act: () => void) => later(act, 0));
}

function isRename({ url }: Sent): boolean {
  return url.searchParams.get("comp") === "rename";
}

function isCreation({ method, url }: Sent): boolean {
  return method === "PUT" && !url.searchParams.has("comp");
}

function watch(end = new AbortController(), replaces = false): Parameters<typeof uploadFile>[2] {
  return { signal: end.signal, replaces, progress: () => undefined, commits: () => undefined };
}

describe("uploads", () => {
  const target = place("folder", "a.txt");
  const file = new File(["hello"], "a.txt", { type: "text/plain" });

  it("write under a temporary name, which becomes the file's in one step", async () => {
    const sent = serve(() => 201);
    await uploadFile(target, file, watch());
    expect(sent.map((one) => one.url.searchParams.get("comp"))).toEqual([null, "range", "rename"]);
    const [made, put, named] = sent as [Sent, Sent, Sent];
    expect(made.url.pathname).toMatch(/^\/file\/vault\/papers\/folder\/~upload-[0-9a-f]{16}\.tmp$/);
    expect(made.headers.get("x-ms-content-length")).toBe("5");
    expect(put.url.pathname).toBe(made.url.pathname);
    expect(put.headers.get("x-ms-range")).toBe("bytes=0-4");
    expect(named.url.pathname).toBe("/file/vault/papers/folder/a.txt");
    expect(named.headers.get("x-ms-file-rename-source")).toBe(`${location.origin}${made.url.pathname}`);
    expect(named.headers.has("x-ms-file-rename-replace-if-exists")).toBe(false);
  });

  it("replace only what a person agreed to replace", async () => {
    const sent = serve(() => 200);
    await uploadFile(target, file, watch(undefined, true));
    expect(sent.find(isRename)?.headers.get("x-ms-file-rename-replace-if-exists")).toBe("true");
  });

  it("send an empty file without ranges", async () => {
    const sent = serve(() => 201);
    await uploadFile(target, new File([], "a.txt"), watch());
    expect(sent.map((one) => one.url.searchParams.get("comp"))).toEqual([null, "rename"]);
  });

  it("have at most four pieces of 4 MiB under way", async () => {
    let now = 0;
    let most = 0;
    const sent = serve(async (one) => {
      if (one.url.searchParams.get("comp") !== "range") return 201;
      now += 1;
      most = Math.max(most, now);
      await new Promise((resolve) => setTimeout(resolve, 1));
      now -= 1;
      return 201;
    });
    const large = new File([new Uint8Array(6 * PIECE_BYTES + 1)], "a.txt");
    await uploadFile(target, large, watch());
    expect(most).toBe(4);
    const ranges = sent.map((one) => one.headers.get("x-ms-range")).filter((one) => one !== null);
    expect(ranges).toHaveLength(7);
    expect(ranges).toContain(`bytes=${6 * PIECE_BYTES}-${6 * PIECE_BYTES}`);
  });

  it("leave nothing behind when they are cancelled", async () => {
    const end = new AbortController();
    const sent = serve((one) => {
      if (one.url.searchParams.get("comp") === "range") end.abort();
      return 201;
    });
    await expect(uploadFile(target, file, watch(end))).rejects.toThrow();
    expect(sent.some(isRename)).toBe(false);
    expect(sent.at(-1)).toMatchObject({ method: "DELETE" });
    expect(sent.at(-1)?.url.pathname).toBe(sent[0]?.url.pathname);
  });

  it("that may not even begin say so, and delete nothing", async () => {
    const sent = serve(() => 403);
    await expect(uploadFile(target, file, watch())).rejects.toMatchObject({ name: "ServiceError", status: 403 });
    expect(sent.map((one) => one.method)).toEqual(["PUT"]);
  });

  it("say what they leave behind", async () => {
    serve((one) => (one.method === "DELETE" ? 403 : one.url.searchParams.get("comp") === "range" ? 400 : 201));
    await expect(uploadFile(target, file, watch())).rejects.toBeInstanceOf(LeftBehind);
  });

  it("are done if only the answer to the rename was lost", async () => {
    const sent = serve((one) => (isRename(one) ? 0 : one.method === "HEAD" ? 404 : 201));
    await expect(uploadFile(target, file, watch())).resolves.toBeUndefined();
    expect(sent.some((one) => one.method === "DELETE")).toBe(false);
  });

  it("are not done if the temporary file never came to be", async () => {
    withoutPauses();
    serve((one) => (isCreation(one) ? 0 : 404));
    await expect(uploadFile(target, file, watch())).rejects.toMatchObject({ code: "NoAnswer" });
  });

  it("outlast a server that refuses each step once for a moment", async () => {
    withoutPauses();
    const refused = new Set<string>();
    const sent = serve((one) => {
      const step = `${one.method} ${one.url.searchParams.get("comp") ?? ""}`;
      if (refused.has(step)) return 201;
      refused.add(step);
      return 503;
    });
    await uploadFile(target, file, watch());
    expect(sent.map((one) => one.url.searchParams.get("comp"))).toEqual([null, null, "range", "range", "rename", "rename"]);
  });

  it("delete the temporary file at a later attempt", async () => {
    withoutPauses();
    let deletions = 0;
    serve((one) => {
      if (one.method === "DELETE") return (deletions += 1) > 1 ? 202 : 503;
      return one.url.searchParams.get("comp") === "range" ? 400 : 201;
    });
    await expect(uploadFile(target, file, watch())).rejects.toMatchObject({ status: 400 });
    expect(deletions).toBe(2);
  });

  it("are not done if the rename and the answer to the deletion were lost", async () => {
    withoutPauses();
    let deletions = 0;
    serve((one) => {
      if (one.method === "DELETE") return (deletions += 1) > 1 ? 404 : 0;
      return isRename(one) ? 0 : 201;
    });
    await expect(uploadFile(target, file, watch())).rejects.toMatchObject({ code: "NoAnswer" });
  });

  it("have names that do not meet", () => {
    expect(new Set(Array.from({ length: 100 }, temporaryName)).size).toBe(100);
  });
});

describe("what people write and read", () => {
  it("reads quotas", () => {
    expect([readQuota("1"), readQuota(" 102400 ")]).toEqual([1, 102_400]);
    for (const text of ["", "0", "1.5", "102401", "many"]) expect(() => readQuota(text)).toThrow();
  });

  it("sets one attribute and keeps the others", () => {
    expect(attributesOf("ReadOnly | Archive")).toEqual(["ReadOnly", "Archive"]);
    expect(attributesOf("None")).toEqual([]);
    expect(withAttribute("Archive | Offline", "Hidden", true)).toBe("Archive | Offline | Hidden");
    expect(withAttribute("Archive", "Archive", false)).toBe("None");
    expect(withAttribute("None", "Hidden", true)).toBe("Hidden");
  });

  it("counts with 64 bits", () => {
    expect(lastByte("0", "10")).toBe("9");
    expect(lastByte("9223372036854775809", "5")).toBe("9223372036854775813");
    expect(lastByte("3", "0")).toBeNull();
  });
});

describe("reading", () => {
  it("refuses bytes of a file that changed meanwhile, since the service does not look at If-Match", async () => {
    serve(() => 200);
    await expect(readRange(place("a"), 0, 4, '"1"')).resolves.toBeInstanceOf(ArrayBuffer);
    await expect(readRange(place("a"), 0, 4, '"2"')).rejects.toThrow("changed");
  });

  it("names a file without what lies above", () => {
    expect(readName(place("a", "b.txt"))).toBe("b.txt");
  });
});
