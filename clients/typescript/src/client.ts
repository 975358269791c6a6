import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

/** Everything that this package throws. */
export class InsistError extends Error {
  override name = "InsistError";
}

/** No answer in time. An order may have been carried out: give it again with the same id. */
export class Unreachable extends InsistError {
  override name = "Unreachable";
}

/** The daemon refused. `type` is a stable word for programs, `detail` says what to do. */
export class Problem extends InsistError {
  override name = "Problem";
  constructor(readonly status: number, readonly type: string, readonly detail: string, readonly retryAfterMs = 0) {
    super(`${type}: ${detail}`);
  }
}

export type Priority = "critical" | "high" | "normal" | 1 | 2 | 3;

export interface NewJob {
  destination: string;
  /** A string is sent as it is, bytes as they are, anything else as its JSON. */
  payload: unknown;
  id?: string;
  tenant?: string;
  priority?: Priority;
  content_type?: string;
  headers?: Record<string, string>;
  run_at?: string | Date;
  deadline?: string | Date;
  correlation_id?: string;
  metadata?: Record<string, unknown>;
  /** Jobs of one key go one at a time, in order. */
  key?: string;
  /** Who is told of its end. */
  callback?: { destination: string } | { url: string };
}

/** A job that was taken. `created` is false when it had been there before, with the same body. */
export interface Accepted {
  id: string;
  tenant: string;
  destination: string;
  created: boolean;
  warning?: string;
}

/** A job of a batch that was refused; `index` is its place in what was given. */
export interface Rejected {
  index: number;
  type: string;
  detail: string;
}

export interface BatchResult {
  accepted: number;
  duplicates: number;
  rejected: Rejected[];
}

export interface Decision {
  shouldRetry: boolean;
  retryCount: number;
  maxRetries: number;
  backoffMinutes?: number;
  backoffMs?: number;
  nextRetryTime?: string;
  retryReason: string;
  errorClassification: "TRANSIENT" | "PERMANENT" | "UNKNOWN";
  originalError: string;
  errorCode?: string;
}

export interface InsistOptions {
  /** Else INSIST_SERVER, else http://127.0.0.1:7878. */
  server?: string;
  /** Else INSIST_TOKEN. */
  token?: string;
  /** Of one request. */
  timeoutMs?: number;
  /** For how long what fails for now is tried again. */
  patienceMs?: number;
}

export interface CallOptions {
  timeoutMs?: number;
  patienceMs?: number;
  contentType?: string;
  signal?: AbortSignal;
}

const AGAIN = new Set([429, 502, 503, 504]); // the daemon, or a proxy before it, says: not now
const BATCH_JOBS_MAX = 1000;
const BATCH_BYTES_MAX = 8 * 1024 * 1024;
const BACKOFF_FIRST_MS = 200;
const BACKOFF_MAX_MS = 10_000;

/**
 * Speaks to one daemon. What fails for now (no connection, 429, 502, 503, 504) is tried again with growing waits and jitter,
 * never before `Retry-After`. Each job gets an id before it is first sent, so that no repetition makes a second job.
 */
export class Insist {
  readonly #server: string;
  readonly #token: string | undefined;
  readonly #timeoutMs: number;
  readonly #patienceMs: number;

  constructor(options: InsistOptions = {}) {
    this.#server = (options.server ?? process.env.INSIST_SERVER ?? "http://127.0.0.1:7878").replace(/\/+$/, "");
    if (!/^https?:\/\/[^/]/.test(this.#server)) throw new TypeError(`server must be http://HOST:PORT or https://HOST, not ${this.#server}`);
    this.#token = options.token ?? process.env.INSIST_TOKEN;
    this.#timeoutMs = options.timeoutMs ?? 30_000;
    this.#patienceMs = options.patienceMs ?? 60_000;
  }

  /** Gives a job. When the promise is kept, the job is on disk; the same id again changes nothing. */
  enqueue(job: NewJob, options?: CallOptions): Promise<Accepted> {
    return this.call<Accepted>("POST", "/v1/jobs", jobText(job), options);
  }

  /** Gives many. A bad one rejects only itself; what is lazy is never held whole in memory. */
  async enqueueBatch(jobs: Iterable<NewJob> | AsyncIterable<NewJob>, options: CallOptions = {}): Promise<BatchResult> {
    const result: BatchResult = { accepted: 0, duplicates: 0, rejected: [] };
    for await (const { first, lines } of chunks(jobs)) {
      const answer = await this.call<BatchResult>("POST", "/v1/jobs/batch", lines.join("\n"), { ...options, contentType: "application/x-ndjson" });
      result.accepted += answer.accepted;
      result.duplicates += answer.duplicates;
      for (const one of answer.rejected) result.rejected.push({ ...one, index: first + one.index });
    }
    return result;
  }

  job(id: string, tenant?: string): Promise<Record<string, unknown>> {
    return this.call("GET", jobPath(id, tenant));
  }

  why(id: string, tenant?: string): Promise<Record<string, unknown>> {
    return this.call("GET", jobPath(id, tenant, "/why"));
  }

  retry(id: string, tenant?: string): Promise<Record<string, unknown>> {
    return this.call("POST", jobPath(id, tenant, "/retry"), "{}");
  }

  cancel(id: string, tenant?: string): Promise<Record<string, unknown>> {
    return this.call("POST", jobPath(id, tenant, "/cancel"), "{}");
  }

  /** What a policy decides, for who sends by himself. */
  decide(policy: string, id: string, error: string, more: Record<string, unknown> = {}): Promise<Decision> {
    return this.call("POST", "/v1/decide", JSON.stringify({ policy, id, submissionError: error, ...more }));
  }

  /** Any call of the API, for what has no method here. */
  async call<T = Record<string, unknown>>(method: string, path: string, body?: string, options: CallOptions = {}): Promise<T> {
    const until = performance.now() + (options.patienceMs ?? this.#patienceMs);
    for (let wait = BACKOFF_FIRST_MS; ; wait = Math.min(wait * 2, BACKOFF_MAX_MS)) {
      let failure: InsistError;
      try {
        return await this.#once<T>(method, path, body, options);
      } catch (error) {
        if (!(error instanceof InsistError) || (error instanceof Problem && !AGAIN.has(error.status))) throw error;
        failure = error;
      }
      const pause = Math.max(Math.random() * wait, failure instanceof Problem ? failure.retryAfterMs : 0);
      if (performance.now() + pause >= until) throw failure;
      await sleep(pause, undefined, options.signal && { signal: options.signal });
    }
  }

  async #once<T>(method: string, path: string, body: string | undefined, options: CallOptions): Promise<T> {
    const headers: Record<string, string> = { accept: "application/json" };
    if (body !== undefined) headers["content-type"] = options.contentType ?? "application/json";
    if (this.#token) headers.authorization = `Bearer ${this.#token}`;
    const limit = AbortSignal.timeout(options.timeoutMs ?? this.#timeoutMs);
    const ended = new AbortController();
    const end = (): void => ended.abort();
    limit.addEventListener("abort", end, { once: true });
    options.signal?.addEventListener("abort", end, { once: true });
    let response: Response, text: string;
    try {
      options.signal?.throwIfAborted();
      response = await fetch(this.#server + path, { method, headers, signal: ended.signal, redirect: "error", ...(body === undefined ? {} : { body }) });
      text = await response.text();
    } catch (error) {
      options.signal?.throwIfAborted();
      throw new Unreachable(`${this.#server}: ${limit.aborted ? "no answer in time" : reasonOf(error)}`, { cause: error });
    } finally {
      options.signal?.removeEventListener("abort", end);
    }
    if (response.ok) return (text ? JSON.parse(text) : undefined) as T;
    throw problemOf(response, text);
  }
}

function reasonOf(error: unknown): string {
  const cause = (error as { cause?: { code?: string; message?: string } }).cause;
  return cause?.code ?? cause?.message ?? String(error);
}

function problemOf(response: Response, text: string): Problem {
  let said: { type?: string; error?: string; detail?: string } = {};
  try {
    said = JSON.parse(text) ?? {};
  } catch {
    said = { detail: text.slice(0, 200) };
  }
  const after = response.headers.get("retry-after") ?? "";
  return new Problem(response.status, said.type ?? said.error ?? `http_${response.status}`, said.detail || response.statusText,
    /^\d+$/.test(after) ? Number(after) * 1000 : 0);
}

/** The job as the API has it: bytes as base64, times as text, an id where there is none. */
function jobText(job: NewJob): string {
  const { payload, ...rest } = job;
  const whole: Record<string, unknown> = { ...rest, id: job.id ?? randomUUID() };
  if (payload instanceof Uint8Array) {
    whole.payload_base64 = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString("base64");
  } else if (payload === null) { // null would count as absent
    whole.payload = "null";
    whole.content_type ??= "application/json";
  } else {
    whole.payload = payload;
  }
  return JSON.stringify(whole); // a Date becomes RFC 3339 in UTC by itself
}

async function* chunks(jobs: Iterable<NewJob> | AsyncIterable<NewJob>): AsyncGenerator<{ first: number; lines: string[] }> {
  let first = 0, index = 0, size = 0, lines: string[] = [];
  for await (const job of jobs) {
    const line = jobText(job);
    const bytes = Buffer.byteLength(line);
    if (lines.length && (lines.length === BATCH_JOBS_MAX || size + bytes > BATCH_BYTES_MAX)) {
      yield { first, lines };
      [first, size, lines] = [index, 0, []];
    }
    lines.push(line);
    size += bytes;
    index++;
  }
  if (lines.length) yield { first, lines };
}

function jobPath(id: string, tenant?: string, tail = ""): string {
  return `/v1/jobs/${encodeURIComponent(id)}${tail}${tenant ? `?tenant=${encodeURIComponent(tenant)}` : ""}`;
}
