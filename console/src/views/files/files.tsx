// The view Files: the shares of an account, one share, a directory or a file, as the address says.

import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";

import { Empty, Problem } from "../../components/messages";
import { ViewHead } from "../../components/parts";
import { isDirectory } from "../../protocol/files/directories";
import type { PathPlace } from "../../protocol/files/place";
import { shareReach } from "../../protocol/files/rights";
import { useLoaded } from "../../state/loaded";
import { address, navigate } from "../../state/router";
import { account, currentSession } from "../../state/session";
import { texts } from "../../texts";
import { lacking as lackingService } from "../service_view";
import { OneDirectory } from "./directory";
import { OneFile } from "./file";
import { FILE, pathAddress, PathCrumbs } from "./place";
import { OneShare } from "./share";
import { ShareList } from "./share_list";

const words = texts.files;

export function Files(): JSX.Element {
  const { credential } = currentSession();
  const [named, share, ...path] = address.value.names;
  const owner = named ?? account.value;
  const reach = credential.kind === "sas" ? shareReach(credential) : null;
  useEffect(() => {
    if (!reach || share !== undefined) return;
    const place = { credential, account: owner, ...reach };
    navigate(pathAddress(place, reach.path.length ? FILE : {}), true);
  }, [share]);
  const lack = lackingService({ title: words.title, service: "file", rights: "", credential });
  if (lack) return lack;
  if (!owner) return <><ViewHead title={words.title} /><Empty title={texts.data.noAccount}>{texts.data.noAccountRemedy}</Empty></>;
  if (share === undefined) return reach ? <ViewHead title={words.title} /> : <ShareList key={owner} owner={owner} />;
  const { snapshot } = address.value.query;
  const place = { credential, account: owner, share, path, ...(snapshot ? { snapshot } : {}) };
  return (
    <>
      <ViewHead title={words.title} />
      <Shown key={JSON.stringify([owner, share, path, snapshot ?? ""])} place={place} />
    </>
  );
}

function Shown({ place }: { readonly place: PathPlace }): JSX.Element {
  // The tabs of a file that was asked about add its kind to the address: it is drawn once all the same,
  // or the focus would be lost.
  const isKnownFile = useMemo(() => address.value.query["kind"] === FILE.kind, []);
  if (place.path.length === 0) return <OneShare place={place} />;
  return isKnownFile ? <OneFile place={place} /> : <Asked place={place} />;
}

/** A path that may be a directory's or a file's. */
function Asked({ place }: { readonly place: PathPlace }): JSX.Element {
  const found = useLoaded("", (signal) => isDirectory(place, signal));
  if (found.value.value === true) return <OneDirectory place={place} />;
  if (found.value.value === false) return <OneFile place={place} />;
  return (
    <div class="listing">
      <PathCrumbs place={place} isDirectory />
      <Problem error={found.error.value} />
    </div>
  );
}
