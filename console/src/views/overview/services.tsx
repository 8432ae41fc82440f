// Figures of now: as tiles for all services, and one line for each service.

import type { JSX } from "preact";

import type { Overview, ServiceFigures } from "../../api/documents";
import { Panel } from "../../components/parts";
import { durationText, rateText, sizeText } from "../../state/times";
import { texts } from "../../texts";

const words = texts.overview;

export function Tiles({ figures }: { readonly figures: Overview }): JSX.Element {
  const sum = (of: (one: ServiceFigures) => number | null): number => figures.services.reduce((total, one) => total + (of(one) ?? 0), 0);
  const worst = (of: (one: ServiceFigures) => number | null): number | null => {
    const known = figures.services.map(of).filter((one) => one !== null);
    return known.length ? Math.max(...known) : null;
  };
  return (
    <dl class="tiles">
      <Tile name={words.tiles.requests} value={rateText(sum((one) => one.requests_per_s))} note={words.perSecond} />
      <Tile name={words.tiles.errors} value={rateText(sum((one) => one.errors_per_s))} note={words.perSecond} />
      <Tile name={words.tiles.p50} value={latency(worst((one) => one.latency_p50_s))} note={words.slowest} />
      <Tile name={words.tiles.p99} value={latency(worst((one) => one.latency_p99_s))} note={words.slowest} />
      <Tile name={words.tiles.received} value={sizeText(sum((one) => one.received_bytes_per_s))} note={words.perSecond} />
      <Tile name={words.tiles.sent} value={sizeText(sum((one) => one.sent_bytes_per_s))} note={words.perSecond} />
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

function latency(seconds: number | null): string {
  return known(seconds, (value) => durationText(value * 1000));
}

function known(value: number | null, format: (value: number) => string): string {
  return value === null ? words.unknown : format(value);
}
