// The last hour as charts. What a viewer may not see is null throughout, and has no chart.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";

import type { SampledHour } from "../../api/documents";
import { Chart, type Series, type Unit } from "../../components/chart";
import { countText, durationText, rateText, sizeText } from "../../state/times";
import { texts } from "../../texts";

const words = texts.overview.charts;
type Values = readonly (number | null)[];

interface Plan {
  readonly title: string;
  readonly format: (value: number) => string;
  readonly unit?: Unit;
  readonly series: readonly (readonly [label: string, color: string, values: (hour: SampledHour) => Values])[];
}

const PLANS: readonly Plan[] = [
  {
    title: words.requests,
    format: rateText,
    series: [
      [words.all, "--series-1", (hour) => hour.requests_per_s],
      [words.refused, "--series-2", (hour) => hour.errors_per_s],
    ],
  },
  {
    title: words.latency,
    format: (seconds) => durationText(seconds * 1000),
    series: [
      [words.p50, "--series-1", (hour) => hour.latency_p50_s],
      [words.p99, "--series-2", (hour) => hour.latency_p99_s],
    ],
  },
  {
    title: words.bytes,
    format: sizeText,
    unit: "bytes",
    series: [
      [words.received, "--series-1", (hour) => hour.received_bytes_per_s],
      [words.sent, "--series-3", (hour) => hour.sent_bytes_per_s],
    ],
  },
  { title: words.commits, format: rateText, series: [["", "--series-1", (hour) => hour.commits_per_s]] },
  { title: words.perSync, format: rateText, series: [["", "--series-1", (hour) => hour.commits_per_sync]] },
  { title: words.memory, format: sizeText, unit: "bytes", series: [["", "--series-1", (hour) => hour.memory_bytes]] },
  { title: words.disk, format: sizeText, unit: "bytes", series: [["", "--series-1", (hour) => hour.disk_free_bytes]] },
  { title: words.connections, format: countText, unit: "count", series: [["", "--series-1", (hour) => hour.connections]] },
];

export function Hour({ hour }: { readonly hour: SampledHour }): JSX.Element {
  const times = useMemo(() => timesOf(hour), [hour]);
  const shown = PLANS.filter((plan) => plan.series.some(([, , of]) => of(hour).some((value) => value !== null)));
  return (
    <section class="charts" aria-label={words.label}>
      {shown.map((plan) => <Chart key={plan.title} title={plan.title} times={times} format={plan.format} unit={plan.unit ?? "any"} series={seriesOf(plan, hour)} />)}
    </section>
  );
}

function seriesOf(plan: Plan, hour: SampledHour): readonly Series[] {
  return plan.series.map(([label, color, of]) => ({ label, color, values: of(hour) }));
}

/** The time of each sample, in seconds since 1970; the newest is the last. */
export function timesOf(hour: SampledHour): readonly number[] {
  const length = Math.max(...[hour.requests_per_s, hour.commits_per_s].map((one) => one.length));
  const end = Date.parse(hour.end_time) / 1000;
  return Array.from({ length }, (_, at) => end - (length - 1 - at) * hour.step_s);
}
