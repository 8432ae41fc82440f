// What a service refused, in its own words. The four services answer XML or JSON; the read API JSON.

/** Which kind of credential a refused view needs; other values are shown as they are. */
export type Needs = string;

export class ServiceError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly requestId: string | null = null,
    readonly needs: Needs | null = null,
  ) {
    super(message);
    this.name = "ServiceError";
  }
}

/** No answer came: the server is gone, or the network is. `status` is 0. */
export class NoAnswer extends ServiceError {
  constructor(message: string) {
    super(0, "NoAnswer", message);
    this.name = "NoAnswer";
  }
}

const TEXT_MAX_CHARS = 64 * 1024;

export async function errorOf(response: Response): Promise<ServiceError> {
  const text = (await response.text().catch(() => "")).slice(0, TEXT_MAX_CHARS);
  const named = response.headers.get("x-ms-error-code");
  const requestId = response.headers.get("x-ms-request-id");
  const found = text.startsWith("{") ? fromJson(text) : fromXml(text);
  const code = found?.code ?? named ?? `${response.status} ${response.statusText}`.trim();
  const message = withoutIds(found?.message ?? (text && !text.includes("<") ? text : code));
  return new ServiceError(response.status, code, message, requestId, found?.needs ?? null);
}

interface Found {
  readonly code: string | null;
  readonly message: string | null;
  readonly needs: string | null;
}

function fromJson(text: string): Found | null {
  try {
    const whole = JSON.parse(text) as Record<string, unknown>;
    const error = (whole["error"] ?? whole["odata.error"]) as Record<string, unknown> | string | undefined;
    if (!error) return null;
    if (typeof error === "string") return { code: null, message: error, needs: null };
    const message = error["text"] ?? error["message"];
    const value = typeof message === "object" ? (message as Record<string, unknown> | null)?.["value"] : message;
    return { code: textOf(error["code"]), message: textOf(value), needs: textOf(error["needs"]) };
  } catch {
    return null;
  }
}

function fromXml(text: string): Found | null {
  if (!text.includes("<Error")) return null;
  const root = new DOMParser().parseFromString(text, "application/xml").documentElement;
  const child = (name: string): string | null => root.getElementsByTagName(name)[0]?.textContent ?? null;
  const detail = child("AuthenticationErrorDetail");
  const message = child("Message");
  return { code: child("Code"), message: detail ? `${withoutIds(message ?? "")} ${detail}` : message, needs: null };
}

/** The message without its lines "RequestId:..." and "Time:...", which are shown by themselves. */
function withoutIds(message: string): string {
  return message
    .split("\n")
    .filter((line) => !/^(RequestId|Time):/.test(line))
    .join("\n")
    .trim();
}

function textOf(value: unknown): string | null {
  return typeof value === "string" && value ? value : null;
}
