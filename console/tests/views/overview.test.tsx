// A tile has the latency of the slowest service, the chart that of all: each says so.

import { render } from "preact";
import { afterEach, expect, test, vi } from "vitest";

import type { SampledHour, ServiceFigures } from "../../src/api/documents";
import { Hour } from "../../src/views/overview/hour";
import { Tiles } from "../../src/views/overview/services";

vi.mock("uplot", () => ({ default: vi.fn() }));

const root = document.createElement("div");
const none = [null];
const hour: SampledHour = {
  end_time: "2030-01-31T12:00:00Z", step_s: 5, scope: "server",
  requests_per_s: [3], errors_per_s: [0], latency_p50_s: [0.2], latency_p99_s: [0.3],
  received_bytes_per_s: none, sent_bytes_per_s: none, commits_per_s: none, commits_per_sync: none,
  memory_bytes: none, disk_free_bytes: none, connections: none,
};

function service(name: ServiceFigures["name"], p50: number): ServiceFigures {
  return {
    name, url: "", port: 1, requests_per_s: 1, errors_per_s: 0, latency_p50_s: p50, latency_p99_s: p50,
    received_bytes_per_s: null, sent_bytes_per_s: null,
  };
}

afterEach(() => {
  render(null, root);
});

test("latencies say which services they are of", () => {
  const services = [service("blob", 0.1), service("queue", 0.4)];
  const figures = { time: "2030-01-31T12:00:00Z", interval_s: 5, scope: "server", services, server: null } as const;
  render(<><Tiles figures={figures} hour={hour} /><Hour hour={hour} /></>, root);
  const tile = [...root.querySelectorAll(".tile")].find((one) => one.textContent?.includes("Latency, median"));
  expect(tile?.textContent).toContain("400 ms slowest service");
  const chart = [...root.querySelectorAll("figcaption")].find((one) => one.textContent?.includes("200 ms"));
  expect(chart?.textContent).toContain("Latency, all services");
});
