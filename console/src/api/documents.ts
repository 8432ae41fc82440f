// The read API's documents. Made by `python -m tests.tidy.console_types` from
// src/strongroom/servers/console/api/; do not edit. The comment says whose a field is. Others get
// null in its place, or an empty list.

export interface AccessOverview {
  readonly account: AccountKeys | null; // own
  readonly accounts: readonly AccountKeys[]; // server
  readonly accounts_flag: string; // server
  readonly roles_flag: string; // server
  readonly roles: readonly RoleAssignment[]; // readable
  readonly add_role_command: string; // own
  readonly takes_tokens: boolean; // readable
  readonly is_open: boolean; // readable
}

export interface AccountFigures {
  readonly name: string; // server
  readonly keys: number; // server
  readonly requests_per_s: number | null; // server
  readonly errors_per_s: number | null; // server
}

export interface AccountKeys {
  readonly name: string; // own
  readonly keys: number; // own
  readonly has_known_key: boolean; // own
  readonly is_operator: boolean; // own
  readonly source: "file" | "store" | "start" | "development" | null; // own
  readonly rotate_command: string; // own
  readonly remove_command: string; // own
}

export interface BreakAct {
  readonly broken: readonly string[]; // readable
}

export interface ContainerRecords {
  readonly container: string; // readable
  readonly may_act: boolean; // readable
  readonly records: PlaceRecords; // readable
}

export interface Coordination {
  readonly change: string; // readable
  readonly containers: readonly ContainerRecords[]; // readable
  readonly has_more: boolean; // readable
  readonly stores: readonly OtherStore[]; // server
}

export interface DevelopmentAccount {
  readonly name: string; // anybody
  readonly key: string; // anybody
}

export interface DiskFigures {
  readonly free_bytes: number; // server
  readonly is_full: boolean; // server
  readonly reserve_bytes: number; // server
  readonly reserve_whole_bytes: number; // server
  readonly records_bytes: number; // server
  readonly log_bytes: number; // server
  readonly segments_bytes: number; // server
  readonly live_bytes: number; // server
  readonly damaged_reads: number; // server
  readonly last_backup_time: string | null; // server
}

export interface ExchangedToken {
  readonly access_token: string; // anybody
  readonly expires_in_s: number; // anybody
  readonly id_token: string | null; // anybody
}

export interface ExplainedSas {
  readonly kind: "service SAS" | "account SAS" | "user delegation SAS"; // readable
  readonly account: string; // readable
  readonly service: "blob" | "queue" | "table" | "file" | ""; // readable
  readonly container: string; // readable
  readonly reaches: string; // readable
  readonly fields: readonly SasField[]; // readable
  readonly permits: readonly SasRight[]; // readable
  readonly starts_time: string | null; // readable
  readonly expires_time: string | null; // readable
  readonly state: "valid" | "not yet" | "expired" | "unknown"; // readable
  readonly policy: string; // readable
  readonly addresses: string; // readable
  readonly protocols: string; // readable
  readonly problems: readonly string[]; // readable
  readonly unchecked: string; // readable
  readonly signature: "right" | "wrong" | null; // own
  readonly signing_key: number; // own
  readonly string_to_sign: string | null; // own
  readonly mistakes: readonly string[]; // own
}

export interface GateAct {
  readonly generation: number; // readable
  readonly is_open: boolean; // readable
  readonly state: string; // readable
}

export interface HeaderText {
  readonly name: string; // readable
  readonly value: string; // readable
}

export interface JobFigures {
  readonly running: number; // server
  readonly failing: number; // server
  readonly done: number; // server
}

export interface LeaseTime {
  readonly state: string; // readable
  readonly left_s: number | null; // readable
}

export interface LoggedError {
  readonly time: string; // server
  readonly level: string; // server
  readonly text: string; // server
}

export interface OtherStore {
  readonly name: string; // server
  readonly url: string; // server
  readonly may_act: boolean; // server
}

export interface Overview {
  readonly time: string; // anybody
  readonly interval_s: number; // anybody
  readonly scope: "account" | "server" | null; // anybody
  readonly services: readonly ServiceFigures[]; // anybody
  readonly server: ServerFigures | null; // server
}

export interface PlaceRecords {
  readonly gates: readonly ShownGate[]; // readable
  readonly held: readonly ShownHold[]; // readable
  readonly barriers: readonly ShownBarrier[]; // readable
  readonly groups: readonly ShownGroup[]; // readable
  readonly ids: readonly ShownIds[]; // readable
  readonly unreadable: readonly UnreadableRecord[]; // readable
  readonly next_after: string; // readable
}

export interface Problem {
  readonly error: ProblemDetail; // anybody
}

export interface ProblemDetail {
  readonly code: string; // anybody
  readonly text: string; // anybody
  readonly needs: string | null; // anybody
}

export interface Replay {
  readonly curl: string; // readable
  readonly python: string | null; // readable
  readonly javascript: string | null; // readable
  readonly dotnet: string | null; // readable
}

export interface RequestInFull {
  readonly request: RequestRow; // readable
  readonly is_whole: boolean; // readable
  readonly is_cut: boolean; // readable
  readonly request_headers: readonly HeaderText[]; // readable
  readonly answer_headers: readonly HeaderText[]; // readable
  readonly why: Why | null; // readable
  readonly replay: Replay | null; // readable
}

export interface RequestRow {
  readonly number: number; // readable
  readonly time: string; // readable
  readonly who: string; // readable
  readonly account: string; // readable
  readonly operation: string; // readable
  readonly method: string; // readable
  readonly service: string; // readable
  readonly path: string; // readable
  readonly status: number; // readable
  readonly code: string; // readable
  readonly duration_ms: number; // readable
  readonly through_console: boolean; // readable
}

export interface RequestsPage {
  readonly newest: number; // readable
  readonly oldest_kept: number; // readable
  readonly requests: readonly RequestRow[]; // readable
}

export interface RoleAssignment {
  readonly principal: string; // readable
  readonly role: string; // readable
  readonly account: string; // readable
  readonly resource: string; // readable
  readonly remove_command: string; // readable
}

export interface SampledHour {
  readonly end_time: string; // anybody
  readonly step_s: number; // anybody
  readonly scope: "account" | "server" | null; // anybody
  readonly requests_per_s: readonly (number | null)[]; // own
  readonly errors_per_s: readonly (number | null)[]; // own
  readonly latency_p50_s: readonly (number | null)[]; // own
  readonly latency_p99_s: readonly (number | null)[]; // own
  readonly received_bytes_per_s: readonly (number | null)[]; // own
  readonly sent_bytes_per_s: readonly (number | null)[]; // own
  readonly commits_per_s: readonly (number | null)[]; // server
  readonly commits_per_sync: readonly (number | null)[]; // server
  readonly disk_free_bytes: readonly (number | null)[]; // server
  readonly memory_bytes: readonly (number | null)[]; // server
  readonly connections: readonly (number | null)[]; // server
}

export interface SasField {
  readonly name: string; // readable
  readonly value: string; // readable
  readonly meaning: string; // readable
}

export interface SasRight {
  readonly letter: string; // readable
  readonly text: string; // readable
}

export interface ServerFigures {
  readonly started_time: string; // server
  readonly data: string | null; // server
  readonly is_ready: boolean; // server
  readonly commits_per_s: number | null; // server
  readonly commits_per_sync: number | null; // server
  readonly memory_bytes: number | null; // server
  readonly connections: number; // server
  readonly connections_max: number; // server
  readonly waiters: number; // server
  readonly disk: DiskFigures | null; // server
  readonly jobs: JobFigures | null; // server
  readonly last_errors: readonly LoggedError[]; // server
  readonly accounts: readonly AccountFigures[]; // server
}

export interface ServiceFigures {
  readonly name: "blob" | "queue" | "table" | "file"; // anybody
  readonly url: string; // anybody
  readonly port: number; // anybody
  readonly requests_per_s: number | null; // own
  readonly errors_per_s: number | null; // own
  readonly latency_p50_s: number | null; // own
  readonly latency_p99_s: number | null; // own
  readonly received_bytes_per_s: number | null; // own
  readonly sent_bytes_per_s: number | null; // own
}

export interface ServicePort {
  readonly name: "blob" | "queue" | "table" | "file"; // anybody
  readonly url: string; // anybody
  readonly port: number; // anybody
}

export interface Session {
  readonly version: string; // anybody
  readonly development_account: DevelopmentAccount | null; // anybody
  readonly issuer: SignInIssuer | null; // anybody
  readonly services: readonly ServicePort[]; // anybody
  readonly console_url: string | null; // anybody
  readonly idle_minutes: number; // anybody
  readonly has_test_clock: boolean; // anybody
}

export interface ShownBarrier {
  readonly name: string; // readable
  readonly generation: number; // readable
  readonly parties: number; // readable
  readonly arrived: readonly ShownHolder[]; // readable
}

export interface ShownFileOpens {
  readonly path: string; // own
  readonly is_directory: boolean; // own
  readonly etag: string; // own
  readonly lease_state: string; // own
  readonly lease_duration: string; // own
  readonly is_delete_pending: boolean; // own
  readonly opens: readonly ShownOpen[]; // own
  readonly open_count: number; // own
  readonly locks: readonly ShownLock[]; // own
  readonly lock_count: number; // own
}

export interface ShownGate {
  readonly name: string; // readable
  readonly waiting: readonly ShownWaiter[]; // readable
  readonly waiting_count: number; // readable
  readonly generation: number; // readable
  readonly is_open: boolean; // readable
  readonly payload: string; // readable
  readonly who: string; // readable
  readonly since: string; // readable
  readonly state: string; // readable
}

export interface ShownGroup {
  readonly name: string; // readable
  readonly members: readonly ShownMember[]; // readable
  readonly member_count: number; // readable
}

export interface ShownHold {
  readonly name: string; // readable
  readonly waiting: readonly ShownWaiter[]; // readable
  readonly waiting_count: number; // readable
  readonly kind: "lock" | "election" | "semaphore" | "rwlock"; // readable
  readonly holders: readonly ShownHolder[]; // readable
  readonly fence: string; // readable
  readonly limit: number; // readable
  readonly value: string; // readable
  readonly end: string; // readable
  readonly state: string; // readable
}

export interface ShownHolder {
  readonly who: string; // readable
  readonly since: string; // readable
  readonly ttl_s: number; // readable
  readonly left_s: number; // readable
  readonly role: string; // readable
  readonly fence: string; // readable
  readonly writes: number; // readable
}

export interface ShownIds {
  readonly name: string; // readable
  readonly next_id: string; // readable
}

export interface ShownLock {
  readonly open_id: string; // own
  readonly offset: string; // own
  readonly length: string; // own
  readonly is_exclusive: boolean; // own
  readonly is_waiting: boolean; // own
}

export interface ShownMember {
  readonly who: string; // readable
  readonly since: string; // readable
  readonly ttl_s: number; // readable
  readonly left_s: number; // readable
  readonly data: string; // readable
}

export interface ShownOpen {
  readonly id: string; // own
  readonly protocol: string; // own
  readonly user: string; // own
  readonly client: string; // own
  readonly session: string; // own
  readonly opened_time: string | null; // own
  readonly reconnected_time: string | null; // own
  readonly access: readonly string[]; // own
  readonly access_mask: string; // own
  readonly share_mode: readonly string[]; // own
  readonly caching_kind: "" | "lease" | "oplock"; // own
  readonly caching: readonly string[]; // own
  readonly is_breaking: boolean; // own
  readonly is_durable: boolean; // own
  readonly is_disconnected: boolean; // own
}

export interface ShownWaiter {
  readonly who: string; // readable
  readonly since: string; // readable
  readonly is_queued: boolean; // readable
}

export interface SignInIssuer {
  readonly name: string; // anybody
  readonly authorization_endpoint: string; // anybody
  readonly client_id: string; // anybody
  readonly scope: string; // anybody
}

export interface StoreRecords {
  readonly change: string; // server
  readonly store: OtherStore; // server
  readonly records: PlaceRecords; // server
}

export interface UnreadableRecord {
  readonly key: string; // readable
  readonly why: string; // readable
}

export interface Who {
  readonly kind: "key" | "bearer"; // anybody
  readonly account: string | null; // anybody
  readonly name: string; // anybody
  readonly is_operator: boolean; // anybody
  readonly may_see: readonly string[]; // anybody
  readonly scope: "account" | "server" | null; // anybody
}

export interface Why {
  readonly rule: string; // readable
  readonly text: string; // readable
  readonly link: string | null; // readable
  readonly string_to_sign: string | null; // readable
  readonly mistakes: readonly string[]; // readable
}
