// What concerns the whole server: shown to operators.

import type { JSX } from "preact";

import type { AccountFigures, LoggedError, ServerFigures } from "../../api/documents";
import { Facts, Panel, Time } from "../../components/parts";
import { countText, rateText, sizeText } from "../../state/times";
import { texts } from "../../texts";

const words = texts.overview.operator;

export function Operator({ server }: { readonly server: ServerFigures }): JSX.Element {
  return (
    <div class="columns">
      <Panel title={words.serverHeading}>
        <Facts
          rows={[
            [words.state, server.is_ready ? words.ready : words.notReady],
            [words.started, <Time key="started" at={server.started_time} />],
            [words.data, server.data ? <code key="data">{server.data}</code> : words.inMemory],
            [words.commitsPerSync, known(server.commits_per_sync, rateText)],
            [words.memory, known(server.memory_bytes, sizeText)],
            [words.connections, words.of(countText(server.connections), countText(server.connections_max))],
            [words.waiters, countText(server.waiters)],
            ...(server.jobs ? [[words.jobs, words.jobsText(server.jobs.running, server.jobs.failing, server.jobs.done)] as const] : []),
          ]}
        />
      </Panel>
      {server.disk && (
        <Panel title={words.diskHeading}>
          {server.disk.is_full && <p class="notice danger">{words.full}</p>}
          <Facts
            rows={[
              [words.free, sizeText(server.disk.free_bytes)],
              [words.reserve, words.of(sizeText(server.disk.reserve_bytes), sizeText(server.disk.reserve_whole_bytes))],
              [words.records, sizeText(server.disk.records_bytes)],
              [words.log, sizeText(server.disk.log_bytes)],
              [words.contents, words.live(sizeText(server.disk.segments_bytes), sizeText(server.disk.live_bytes))],
              [words.damaged, countText(server.disk.damaged_reads)],
              [words.backup, server.disk.last_backup_time ? <Time key="backup" at={server.disk.last_backup_time} /> : words.never],
            ]}
          />
        </Panel>
      )}
      <Accounts accounts={server.accounts} />
      <LastErrors errors={server.last_errors} />
    </div>
  );
}

function Accounts({ accounts }: { readonly accounts: readonly AccountFigures[] }): JSX.Element {
  return (
    <Panel title={words.accountsHeading}>
      <div class="scroll" role="group" aria-label={words.accountsHeading} tabIndex={0}>
        <table aria-label={words.accountsHeading}>
          <thead>
            <tr>
              <th scope="col">{words.account}</th>
              <th scope="col" class="number">{words.keys}</th>
              <th scope="col" class="number">{words.requests}</th>
              <th scope="col" class="number">{words.errors}</th>
            </tr>
          </thead>
          <tbody>
            {accounts.map((one) => (
              <tr key={one.name}>
                <th scope="row">{one.name}</th>
                <td class="number">{countText(one.keys)}</td>
                <td class="number">{known(one.requests_per_s, rateText)}</td>
                <td class="number">{known(one.errors_per_s, rateText)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function LastErrors({ errors }: { readonly errors: readonly LoggedError[] }): JSX.Element {
  return (
    <Panel title={words.errorsHeading}>
      {errors.length === 0 ? (
        <p class="muted">{words.noErrors}</p>
      ) : (
        <ul class="log">
          {errors.map((one, at) => (
            <li key={at}>
              <span class="muted"><Time at={one.time} /> {one.level}</span>
              <code>{one.text}</code>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function known(value: number | null, format: (value: number) => string): string {
  return value === null ? texts.overview.unknown : format(value);
}
