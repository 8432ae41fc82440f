// One request in full: why it was answered so, its headers, how to send it again.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import type { HeaderText, Replay as ReplayTexts, RequestInFull, Why as WhyTexts } from "../../api/documents";
import { Problem } from "../../components/messages";
import { Time } from "../../components/parts";
import { Snippets } from "../../components/snippets";
import { askApi } from "../../protocol/requests";
import { accountQuery, currentSession } from "../../state/session";
import { texts } from "../../texts";

const words = texts.requests;

export function OneRequest({ number, closed }: { readonly number: string; readonly closed: string }): JSX.Element {
  const region = useRef<HTMLElement>(null);
  const found = useSignal<RequestInFull | null>(null);
  const error = useSignal<unknown>(null);
  useEffect(() => {
    const end = new AbortController();
    askApi<RequestInFull>(currentSession().credential, `requests/${encodeURIComponent(number)}`, accountQuery(), end.signal)
      .then((document) => { found.value = document; })
      .catch((problem: unknown) => { if (!end.signal.aborted) error.value = problem; });
    region.current?.focus({ preventScroll: false });
    return () => { end.abort(); };
  }, [number]);
  const request = found.value;
  return (
    <section class="panel one" aria-label={words.region} ref={region} tabIndex={-1}>
      <header>
        <p class="one-title">{request ? <Line document={request} /> : `#${number}`}</p>
        <a class="button quiet" href={closed}>{words.close}</a>
      </header>
      <Problem error={error.value} />
      {request && (
        <>
          {!request.is_whole && <p class="notice">{words.notKept}</p>}
          {request.is_cut && <p class="notice">{words.isCut}</p>}
          <Why why={request.why} status={request.request.status} isWhole={request.is_whole} />
          <Headers document={request} />
          <Replay replay={request.replay} />
        </>
      )}
    </section>
  );
}

function Line({ document }: { readonly document: RequestInFull }): JSX.Element {
  const row = document.request;
  return (
    <>
      {row.operation && <><b>{row.operation}</b> </>}<code>{row.method} {row.path}</code>
      <br />
      <span class="muted">{row.status} {row.code} · <Time at={row.time} /></span>
    </>
  );
}

/** The rule, and where it stands. Without an address of the documentation that is a place in the repository, no link. */
function RuleOf({ rule, link }: { readonly rule: string; readonly link: string | null }): JSX.Element {
  if (link?.startsWith("https://")) {
    return (
      <p>
        <a href={link} target="_blank" rel="noopener noreferrer">
          {words.rule(rule)}
        </a>
      </p>
    );
  }
  return <p>{link ? words.ruleAt(rule, link) : words.rule(rule)}</p>;
}

function Why({ why, status, isWhole }: { readonly why: WhyTexts | null; readonly status: number; readonly isWhole: boolean }): JSX.Element {
  return (
    <div class="block">
      <h2>{words.why}</h2>
      {!why && <p>{status < 400 ? words.succeeded : isWhole ? words.noReason : words.notAnyMore}</p>}
      {why && (
        <>
          <p>{why.text}</p>
          {why.rule && <RuleOf rule={why.rule} link={why.link} />}
          {why.mistakes.length > 0 && (
            <>
              <h3>{words.mistakes}</h3>
              <ul class="mistakes">{why.mistakes.map((one) => <li key={one}>{one}</li>)}</ul>
            </>
          )}
          {why.string_to_sign !== null && (
            <>
              <h3>{words.stringToSign}</h3>
              <p class="hint">{words.stringToSignHint}</p>
              <pre class="string-to-sign" tabIndex={0}>{why.string_to_sign}</pre>
            </>
          )}
        </>
      )}
    </div>
  );
}

function Headers({ document }: { readonly document: RequestInFull }): JSX.Element {
  return (
    <div class="block">
      <h2>{words.headers}</h2>
      {!document.is_whole && <p class="muted">{words.notAnyMore}</p>}
      <HeaderTable title={words.requestHeaders} headers={document.request_headers} />
      <HeaderTable title={words.answerHeaders} headers={document.answer_headers} />
    </div>
  );
}

function HeaderTable({ title, headers }: { readonly title: string; readonly headers: readonly HeaderText[] }): JSX.Element | null {
  if (headers.length === 0) return null;
  return (
    <table aria-label={title}>
      <thead>
        <tr>
          <th scope="col">{title}</th>
          <th scope="col">{words.value}</th>
        </tr>
      </thead>
      <tbody>
        {headers.map((one, at) => (
          <tr key={at}>
            <td>{one.name}</td>
            <td>{one.value}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Replay({ replay }: { readonly replay: ReplayTexts | null }): JSX.Element {
  const all = [["curl", replay?.curl], ["Python", replay?.python], ["JavaScript", replay?.javascript], [".NET", replay?.dotnet]] as const;
  const snippets = all.flatMap(([language, code]) => (code ? [[language, code] as const] : []));
  return (
    <div class="block">
      <h2>{words.replay}</h2>
      {snippets.length > 0 ? <Snippets snippets={snippets} /> : <p class="muted">{words.notAnyMore}</p>}
    </div>
  );
}
