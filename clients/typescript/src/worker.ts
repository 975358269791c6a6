import { setTimeout as sleep } from "node:timers/promises";
import { InsistError, Problem, type Insist } from "./client.js";

const POLL_S = 5; // how long one question for work waits, and so how long a stop may take when there is none
const ERROR_CHARS_MAX = 4000;

/** Thrown by a handler: try again later, whatever the policy thinks of the text. */
export class Transient extends Error {
  override name = "Transient";
  constructor(message: string, readonly more: { code?: string; retryAfterS?: number } = {}) {
    super(message);
  }
}

/** Thrown by a handler: this will never work; make it a dead letter. */
export class Permanent extends Error {
  override name = "Permanent";
  constructor(message: string, readonly more: { code?: string } = {}) {
    super(message);
  }
}

interface Lease {
  id: string; tenant: string; destination: string; attempt: number; lease: string;
  payload?: string; payload_base64?: string; content_type?: string; correlation_id?: string;
  headers?: Record<string, string>; metadata?: Record<string, unknown>; key?: string; gap?: boolean;
}

/** What a handler is given. */
export class LeasedJob {
  readonly id: string;
  readonly tenant: string;
  readonly destination: string;
  readonly attempt: number;
  readonly lease: string;
  readonly payload: Buffer;
  readonly contentType: string | undefined;
  readonly correlationId: string | undefined;
  readonly headers: Record<string, string>;
  readonly metadata: Record<string, unknown>;
  readonly key: string | undefined;
  /** The one of its key before it is a dead letter. */
  readonly gap: boolean;
  readonly #lost = new AbortController();

  constructor(lease: Lease) {
    this.id = lease.id;
    this.tenant = lease.tenant;
    this.destination = lease.destination;
    this.attempt = lease.attempt;
    this.lease = lease.lease;
    this.payload = lease.payload_base64 === undefined ? Buffer.from(lease.payload ?? "") : Buffer.from(lease.payload_base64, "base64");
    this.contentType = lease.content_type;
    this.correlationId = lease.correlation_id;
    this.headers = lease.headers ?? {};
    this.metadata = lease.metadata ?? {};
    this.key = lease.key;
    this.gap = lease.gap ?? false;
  }

  /** Aborted when somebody else may have the job now: a long handler gives it to fetch, or looks at it. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  json<T = unknown>(): T {
    return JSON.parse(this.payload.toString()) as T;
  }

  /** @internal */
  lose(): void {
    this.#lost.abort();
  }
}

export type Handler = (job: LeasedJob) => unknown;

export interface WorkerOptions {
  concurrency?: number;
  leaseS?: number;
  name?: string;
  /** Told of what went wrong beside the jobs themselves; else console.warn. */
  onError?: (message: string, error: unknown) => void;
}

/**
 * Runs `handler(job)` for jobs of a `transport: pull` destination, `concurrency` at once. A handler that returns is done. One that
 * throws has failed: the destination's policy decides by the text, unless it threw Transient or Permanent.
 */
export class Worker {
  readonly #insist: Insist;
  readonly #destination: string;
  readonly #handler: Handler;
  readonly #options: Required<Omit<WorkerOptions, "name">> & { name: string | undefined };
  readonly #held = new Map<string, LeasedJob>();
  readonly #stopping = new AbortController();
  #wake: () => void = () => {};

  constructor(insist: Insist, destination: string, handler: Handler, options: WorkerOptions = {}) {
    this.#insist = insist;
    this.#destination = destination;
    this.#handler = handler;
    this.#options = {
      concurrency: options.concurrency ?? 4, leaseS: options.leaseS ?? 60, name: options.name,
      onError: options.onError ?? ((message, error) => console.warn(`insist: ${message}:`, error)),
    };
    if (this.#options.concurrency < 1 || this.#options.leaseS < 3) throw new RangeError("concurrency is at least 1, leaseS at least 3");
  }

  /** Takes no more; the promise of run() is kept when those that are under way have ended. */
  stop(): void {
    this.#stopping.abort();
    this.#wake();
  }

  async run(): Promise<void> {
    const heart = setInterval(() => void this.#beat(), (this.#options.leaseS * 1000) / 3);
    try {
      while (!this.#stopping.signal.aborted) {
        const places = this.#options.concurrency - this.#held.size;
        if (places > 0) await this.#take(places);
        else await this.#oneEnds();
      }
    } finally {
      while (this.#held.size) await this.#oneEnds();
      clearInterval(heart);
    }
  }

  #oneEnds(): Promise<void> {
    return new Promise((done) => {
      this.#wake = done;
    });
  }

  async #take(places: number): Promise<void> {
    const wish = { destination: this.#destination, max: places, wait_s: POLL_S, lease_s: this.#options.leaseS, worker: this.#options.name };
    let leases: Lease[];
    try {
      ({ leases } = await this.#insist.call<{ leases: Lease[] }>("POST", "/v1/leases", JSON.stringify(wish),
        { timeoutMs: (POLL_S + 30) * 1000, patienceMs: 0 }));
    } catch (error) {
      // No such destination, no such right: waiting does not help.
      if (!(error instanceof InsistError) || (error instanceof Problem && error.status < 500 && error.status !== 429)) throw error;
      this.#options.onError("no work for now", error);
      const pause = Math.max(1000, error instanceof Problem ? error.retryAfterMs : 0);
      await sleep(pause, undefined, { signal: this.#stopping.signal }).catch(() => {});
      return;
    }
    for (const lease of leases) {
      const job = new LeasedJob(lease);
      this.#held.set(job.lease, job);
      void this.#work(job);
    }
  }

  async #work(job: LeasedJob): Promise<void> {
    try {
      let body: Record<string, unknown>, path: string;
      try {
        await this.#handler(job);
        [path, body] = ["/v1/leases/ack", { leases: [job.lease] }];
      } catch (error) { // whatever a handler throws is the job's failure, not the worker's
        [path, body] = ["/v1/leases/nack", nackOf(job, error)];
      }
      await this.#insist.call("POST", path, JSON.stringify(body));
    } catch (error) {
      job.lose();
      this.#options.onError(`job ${job.id}: what came of it could not be told, it may be done again`, error);
    } finally {
      this.#held.delete(job.lease);
      this.#wake();
    }
  }

  /** Prolongs every lease in time for two more tries before it ends. */
  async #beat(): Promise<void> {
    const leases = [...this.#held.values()].filter((job) => !job.lost.aborted).map((job) => job.lease);
    for (let first = 0; first < leases.length; first += 1000) await this.#extend(leases.slice(first, first + 1000));
  }

  async #extend(leases: string[]): Promise<void> {
    const body = JSON.stringify({ leases, lease_s: this.#options.leaseS });
    try {
      const answer = await this.#insist.call<{ results: { lease: string; status: string }[] }>("POST", "/v1/leases/extend", body,
        { timeoutMs: 10_000, patienceMs: (this.#options.leaseS * 1000) / 3 });
      for (const one of answer.results) if (one.status !== "extended") this.#held.get(one.lease)?.lose();
    } catch (error) {
      if (error instanceof Problem && error.type === "lease_lost") for (const lease of leases) this.#held.get(lease)?.lose();
      else this.#options.onError("leases could not be prolonged", error);
    }
  }
}

function nackOf(job: LeasedJob, error: unknown): Record<string, unknown> {
  const known = error instanceof Transient || error instanceof Permanent;
  const text = known ? error.message : String(error);
  const body: Record<string, unknown> = { lease: job.lease, error: text.slice(0, ERROR_CHARS_MAX) || "failed without a word" };
  if (known) {
    body.class = error instanceof Permanent ? "permanent" : "transient";
    if (error.more.code) body.code = error.more.code;
    if (error instanceof Transient && error.more.retryAfterS !== undefined) body.retry_after = error.more.retryAfterS;
  }
  return body;
}
