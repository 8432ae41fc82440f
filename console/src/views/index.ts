// The views that are there, in the order of the navigation. A view that is not here has no link.

import type { ComponentType } from "preact";

import type { IconName } from "../components/icons";
import type { CredentialKind } from "../protocol/credentials";
import { texts } from "../texts";
import { Access } from "./access/access";
import { Blobs } from "./blobs/blobs";
import { Coordination } from "./coordination/coordination";
import { Files } from "./files/files";
import { Overview } from "./overview/overview";
import { Queues } from "./queues/queues";
import { Requests } from "./requests/requests";
import { Tables } from "./tables/tables";

export interface View {
  /** The first segment of its addresses; the server serves the page under these (pages.py). */
  readonly name: "overview" | "blobs" | "queues" | "tables" | "files" | "coordination" | "requests" | "access";
  readonly title: string;
  readonly icon: IconName;
  /** Who may see it; others are told which credential it needs, before anything is asked. */
  readonly for: readonly CredentialKind[];
  readonly component: ComponentType;
}

export const VIEWS: readonly View[] = [
  { name: "overview", title: texts.overview.title, icon: "overview", for: ["key", "bearer"], component: Overview },
  { name: "blobs", title: texts.blobs.title, icon: "blobs", for: ["key", "sas", "bearer"], component: Blobs },
  { name: "queues", title: texts.queues.title, icon: "queues", for: ["key", "sas", "bearer"], component: Queues },
  { name: "tables", title: texts.tables.title, icon: "tables", for: ["key", "sas", "bearer"], component: Tables },
  { name: "files", title: texts.files.title, icon: "files", for: ["key", "sas", "bearer"], component: Files },
  { name: "coordination", title: texts.coordination.title, icon: "coordination", for: ["key", "bearer"], component: Coordination },
  { name: "requests", title: texts.requests.title, icon: "requests", for: ["key", "bearer"], component: Requests },
  { name: "access", title: texts.access.title, icon: "access", for: ["key", "bearer"], component: Access },
];

export function viewNamed(name: string): View | undefined {
  return VIEWS.find((view) => view.name === name);
}
