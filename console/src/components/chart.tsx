// A chart of the last hour. The newest values stand beside it as text; pointing at it shows others.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { theme } from "../state/theme";
import { clockTime } from "../state/times";
import { texts } from "../texts";
import { lonely } from "./chart_points";

export interface Series {
  readonly label: string;
  /** A custom property of styles/tokens.css: "--series-1". */
  readonly color: string;
  /** One for each time; null: not known. */
  readonly values: readonly (number | null)[];
}

/** What the marks of the axis are multiples of. */
export type Unit = "any" | "bytes" | "count";

export interface ChartProps {
  readonly title: string;
  /** Seconds since 1970. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  readonly unit?: Unit;
}

const HEIGHT_PX = 120;
const AXIS_PX = 62;
/** The time that a chart shows at least, when the server has just started. */
const SHORTEST_S = 300;
const MARKS: Readonly<Record<"bytes" | "count", number[]>> = {
  bytes: Array.from({ length: 52 }, (_, at) => 2 ** at),
  count: Array.from({ length: 12 }, (_, at) => [1, 2, 5].map((one) => one * 10 ** at)).flat(),
};

export function Chart({ title, times, series, format, unit = "any" }: ChartProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const pointed = useSignal<number | null>(null);
  const labels = series.map((one) => one.label).join("\n");
  useEffect(() => {
    if (!box.current) return undefined;
    const made = new uPlot(options(box.current, series, format, unit, (at) => { pointed.value = at; }), dataOf(times, series), box.current);
    plot.current = made;
    const observer = new ResizeObserver(([entry]) => {
      if (entry) made.setSize({ width: entry.contentRect.width, height: HEIGHT_PX });
    });
    observer.observe(box.current);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [labels, theme.value]);
  useEffect(() => {
    plot.current?.setData(dataOf(times, series));
  }, [times]);
  const at = pointed.value ?? lastKnown(series);
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{title}</span>
        <span class="legend">
          {series.map((one) => (
            <span key={one.label}>
              <i class="swatch" style={{ background: `var(${one.color})` }} />
              {one.label && <span class="muted">{one.label}</span>}
              <b>{valueText(one.values[at] ?? null, format)}</b>
            </span>
          ))}
          <span class="muted at">{pointed.value !== null && times[at] ? clockTime(times[at] * 1000) : ""}</span>
        </span>
      </figcaption>
      <div ref={box} class="plot" aria-hidden="true" />
    </figure>
  );
}

function valueText(value: number | null, format: (value: number) => string): string {
  return value === null ? texts.overview.unknown : format(value);
}

function lastKnown(series: readonly Series[]): number {
  const length = series[0]?.values.length ?? 0;
  for (let at = length - 1; at >= 0; at -= 1) {
    if (series.some((one) => one.values[at] !== null && one.values[at] !== undefined)) return at;
  }
  return Math.max(0, length - 1);
}

function dataOf(times: readonly number[], series: readonly Series[]): uPlot.AlignedData {
  return [times as number[], ...series.map((one) => one.values as (number | null)[])];
}

function options(
  box: HTMLElement,
  series: readonly Series[],
  format: (value: number) => string,
  unit: Unit,
  point: (at: number | null) => void,
): uPlot.Options {
  const style = getComputedStyle(box);
  const color = (name: string): string => style.getPropertyValue(name).trim();
  const axis = { stroke: color("--muted"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  return {
    width: box.clientWidth || 300,
    height: HEIGHT_PX,
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    scales: { x: { range: (_, first, last) => [Math.min(first, last - SHORTEST_S), last] }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [
      { ...axis, space: 60, size: 24, values: (_, ticks) => ticks.map((one) => clockTime(one * 1000).slice(0, 5)) },
      { ...axis, ...(unit === "any" ? {} : { incrs: MARKS[unit] }), space: 34, size: AXIS_PX, values: (_, ticks) => ticks.map(format) },
    ],
    series: [
      {},
      ...series.map((one) => ({
        stroke: color(one.color),
        width: 1.5,
        spanGaps: false,
        // A value between two gaps has no line.
        points: { show: false, size: 4, fill: color(one.color), filter: (made: uPlot, at: number) => lonely(made.data[at] ?? []) },
      })),
    ],
    hooks: { setCursor: [(made) => { point(made.cursor.idx ?? null); }] },
  };
}
