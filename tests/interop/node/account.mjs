// The service itself: its properties, what the account is.

import { request } from "node:http";
import { service, status, step } from "./steps.mjs";

await step("account", async () => {
  const { skuName, accountKind } = await service.getAccountInfo();
  return [typeof skuName, typeof accountKind];
});
const rule = {
  allowedOrigins: "https://example.org,http://*.example.com", allowedMethods: "GET,PUT",
  allowedHeaders: "x-ms-meta-*,x-ms-blob-type", exposedHeaders: "x-ms-meta-*", maxAgeInSeconds: 200,
};
const retention = { enabled: true, days: 7 };
await step("set properties", async () => status(await service.setProperties({
  blobAnalyticsLogging: { version: "1.0", deleteProperty: true, read: false, write: true, retentionPolicy: retention },
  hourMetrics: { version: "1.0", enabled: true, includeAPIs: true, retentionPolicy: retention },
  minuteMetrics: { version: "1.0", enabled: false, retentionPolicy: { enabled: false } },
  cors: [rule], defaultServiceVersion: "2021-12-02",
})));
await step("get properties", async () => {
  const { cors, defaultServiceVersion, hourMetrics, blobAnalyticsLogging } = await service.getProperties();
  return { cors, defaultServiceVersion, hourMetrics, blobAnalyticsLogging };
});
await step("what is not given stays", async () => {
  await service.setProperties({ defaultServiceVersion: "2020-10-02" });
  const found = await service.getProperties();
  return [found.cors.length, found.defaultServiceVersion];
});
/** What a browser asks before a request of another origin. */
function preflight(origin) {
  const headers = { Origin: origin, "Access-Control-Request-Method": "PUT" };
  return new Promise((resolve, reject) => {
    const asked = request(`${service.url}/any/blob`, { method: "OPTIONS", headers }, (answer) => {
      const { "access-control-allow-origin": allowed, "access-control-max-age": age } = answer.headers;
      answer.resume().on("end", () => resolve([answer.statusCode, allowed ?? null, age ?? null]));
    });
    asked.on("error", reject).end();
  });
}
await step("preflight", () => preflight("https://example.org"));
await step("preflight of a stranger", () => preflight("https://evil.example"));
await step("bad properties", () => service.setProperties({ cors: [{ ...rule, allowedMethods: "BREW" }] }));
await step("rules removed", async () => {
  await service.setProperties({ cors: [] });
  return (await service.getProperties()).cors ?? [];
});
await step("a key that nobody can ask for by key", () =>
  service.getUserDelegationKey(new Date(), new Date(Date.now() + 3600_000)));
