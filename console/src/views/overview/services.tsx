// Figures of now: as tiles for all services, and one line for each service.

import type { JSX } from "preact";

import type { Overview, SampledHour, ServiceFigures } from "../../api/documents";
import { Panel } from "../../components/parts";
import { durationText, rateText, sizeText } from "../../state/times";
import { texts } from "../../texts";

const words = texts.overview;

type Figure = (one: ServiceFigures) => number | null;

export function Tiles({ figures, hour }: { readonly figures: Overview; readonly hour: SampledHour | null }): JSX.Element {
  const sum = (of: Figure): number | null => {
    const known = figures.services.map(of).filter((one) => one !== null);
    return known.length ? known.reduce((total, one) => total + one, 0) : null;
  };
  const worst = (of: Figure): number | null => {
    const known = figures.services.map(of).filter((one) => one !== null);
    return known.length ? Math.max(...known) : null;
  };
  return (
    <dl class="tiles">
      <Tile name={words.tiles.requests} value={known(sum((one) => one.requests_per_s), rateText)} note={words.perSecond} />
      <Tile name={words.tiles.errors} value={known(sum((one) => one.errors_per_s), rateText)} note={words.perSecond} />
      <Tile name={words.tiles.p50} value={latency(worst((one) => one.latency_p50_s))} note={words.slowest} />
      <Tile name={words.tiles.p99} value={latency(worst((one) => one.latency_p99_s))} note={words.slowest} />
      <Tile name={words.tiles.received} value={known(sum((one) => one.received_bytes_per_s) ?? newest(hour?.received_bytes_per_s), sizeText)} note={words.perSecond} />
      <Tile name={words.tiles.sent} value={known(sum((one) => one.sent_bytes_per_s) ?? newest(hour?.sent_bytes_per_s), sizeText)} note={words.perSecond} />
    </dl>
  );
}

function Tile({ name, value, note }: { readonly name: string; readonly value: string; readonly note: string }): JSX.Element {
  return (
    <div class="tile">
      <dt>{name}</dt>
      <dd>{value} <span class="note">{note}</span></dd>
    </div>
  );
}

export function Services({ services }: { readonly services: readonly ServiceFigures[] }): JSX.Element {
  return (
    <Panel title={words.servicesHeading}>
      <div class="scroll" role="group" aria-label={words.servicesHeading} tabIndex={0}>
        <table aria-label={words.servicesHeading}>
          <thead>
            <tr>
              <th scope="col">{words.columns.service}</th>
              <th scope="col" class="number">{words.columns.port}</th>
              <th scope="col" class="number">{words.columns.requests}</th>
              <th scope="col" class="number">{words.columns.errors}</th>
              <th scope="col" class="number">{words.columns.p50}</th>
              <th scope="col" class="number">{words.columns.p99}</th>
              <th scope="col" class="number">{words.columns.received}</th>
              <th scope="col" class="number">{words.columns.sent}</th>
            </tr>
          </thead>
          <tbody>
            {services.map((one) => (
              <tr key={one.name}>
                <th scope="row">{words.services[one.name]}</th>
                <td class="number">{one.port}</td>
                <td class="number">{known(one.requests_per_s, rateText)}</td>
                <td class="number">{known(one.errors_per_s, rateText)}</td>
                <td class="number">{latency(one.latency_p50_s)}</td>
                <td class="number">{latency(one.latency_p99_s)}</td>
                <td class="number">{known(one.received_bytes_per_s, sizeText)}</td>
                <td class="number">{known(one.sent_bytes_per_s, sizeText)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function newest(values: readonly (number | null)[] = []): number | null {
  return values.findLast((one) => one !== null) ?? null;
}

function latency(seconds: number | null): string {
  return known(seconds, (value) => durationText(value * 1000));
}

function known(value: number | null, format: (value: number) => string): string {
  return value === null ? words.unknown : format(value);
}
