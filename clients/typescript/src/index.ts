/** insist: give it work, take work from it, verify what it sends. */
export { Insist, InsistError, Problem, Unreachable } from "./client.js";
export type { Accepted, BatchResult, CallOptions, Decision, InsistOptions, NewJob, Priority, Rejected } from "./client.js";
export { LeasedJob, Permanent, Transient, Worker } from "./worker.js";
export type { Handler, WorkerOptions } from "./worker.js";
export { InvalidSignature, verifyWebhook } from "./webhook.js";
export type { VerifyOptions, WebhookHeaders } from "./webhook.js";
