// Overview: what the server does now and did in the last hour, and how a program connects.

import type { JSX } from "preact";
import { useRef } from "preact/hooks";

import type { Overview as Figures, SampledHour } from "../../api/documents";
import { Problem } from "../../components/messages";
import { ViewHead } from "../../components/parts";
import { useLive } from "../../state/live";
import { texts } from "../../texts";
import { Connect } from "./connect";
import { Hour } from "./hour";
import { Operator } from "./operator";
import { Services, Tiles } from "./services";

const FIGURES_EVERY_MS = 2_500;
const HOUR_EVERY_MS = 10_000;
const words = texts.overview;

export function Overview(): JSX.Element {
  const figures = useLive<Figures>("overview", FIGURES_EVERY_MS);
  const hour = useLive<SampledHour>("history", HOUR_EVERY_MS);
  const isNew = useRef<boolean | null>(null);
  if (isNew.current === null && hour.document.value) isNew.current = isQuiet(hour.document.value);
  const now = figures.document.value;
  return (
    <>
      <ViewHead title={words.title} lead={now?.scope ? words.scopes[now.scope] : words.lead} />
      <Problem error={figures.error.value ?? hour.error.value} />
      {now && <Tiles figures={now} hour={hour.document.value} />}
      {isNew.current && <Connect />}
      {hour.document.value && <Hour hour={hour.document.value} />}
      {isNew.current === false && <Connect />}
      {now && <Services services={now.services} />}
      {now?.server && <Operator server={now.server} />}
    </>
  );
}

/** Whether nothing was asked in the last hour: how to connect then stands first, and stays there. */
function isQuiet(hour: SampledHour): boolean {
  return hour.requests_per_s.every((one) => !one);
}
