// A SAS URL that a person pastes. It names the service's own port; the page asks its own port.

import { SERVICES, type SasCredential, type Service } from "./credentials";

export interface ServiceAddress {
  readonly name: string;
  readonly port: number;
}

/** Why a text is no SAS URL of this server; the texts are in texts.ts. */
export type SasProblem = "not_a_url" | "no_signature" | "no_service" | "no_account";

/**
 * Read a SAS URL: path style, host style, or that of a port for all services.
 *
 * Arguments: `services`: the services of this server and their ports.
 */
export function readSasUrl(text: string, services: readonly ServiceAddress[]): SasCredential | SasProblem {
  let url: URL;
  try {
    url = new URL(text.trim());
  } catch {
    return "not_a_url";
  }
  if (!/^https?:$/.test(url.protocol)) return "not_a_url";
  if (!url.searchParams.get("sig")) return "no_signature";
  const segments = url.pathname.split("/").filter((one, at) => at > 0 && one !== "");
  const inHost = serviceOfHost(url.hostname);
  const service = inHost ?? takeService(segments) ?? serviceOfPort(portOf(url), services);
  if (!service) return "no_service";
  const account = inHost ? url.hostname.split(".")[0] : segments.shift();
  if (!account) return "no_account";
  const path = segments.map((one) => `/${one}`).join("");
  return { kind: "sas", account, service, path, token: url.search.slice(1) };
}

function serviceOfHost(host: string): Service | null {
  const label = host.split(".")[1] ?? "";
  const isIp = /^[\d.]+$/.test(host) || host.includes(":");
  return !isIp && isService(label) ? label : null;
}

// A port for all services: the first segment names the service, the second the account.
function takeService(segments: string[]): Service | null {
  const first = segments[0] ?? "";
  return segments.length > 1 && isService(first) ? (segments.shift() as Service) : null;
}

function serviceOfPort(port: number, services: readonly ServiceAddress[]): Service | null {
  const found = services.find((one) => one.port === port)?.name ?? "";
  return isService(found) ? found : null;
}

function portOf(url: URL): number {
  return url.port ? Number(url.port) : url.protocol === "https:" ? 443 : 80;
}

function isService(text: string): text is Service {
  return (SERVICES as readonly string[]).includes(text);
}
