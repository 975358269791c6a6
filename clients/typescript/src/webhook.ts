import { createHmac, timingSafeEqual } from "node:crypto";
import { InsistError } from "./client.js";

/** Nobody who has the secret sent this, or long ago, or it was changed on the way. */
export class InvalidSignature extends InsistError {
  override name = "InvalidSignature";
}

export type WebhookHeaders = Headers | Record<string, string | string[] | undefined>;

export interface VerifyOptions {
  toleranceS?: number;
  now?: Date;
}

/**
 * Verifies what insist sends to a destination with `sign:` (Standard Webhooks), and returns the message's id, by which one that comes
 * twice is known. `body` is what came, byte for byte, before anything has read it as JSON. Several secrets are for the time in
 * which one follows another.
 */
export function verifyWebhook(secrets: string | readonly string[], headers: WebhookHeaders, body: string | Uint8Array,
                              options: VerifyOptions = {}): string {
  const [id, at, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) => headerOf(headers, name));
  if (!id || !at || !signatures) throw new InvalidSignature("webhook-id, webhook-timestamp or webhook-signature is missing");
  const toleranceS = options.toleranceS ?? 300;
  if (!/^\d{1,15}$/.test(at) || Math.abs((options.now?.getTime() ?? Date.now()) / 1000 - Number(at)) > toleranceS)
    throw new InvalidSignature(`webhook-timestamp ${at} is not within ${toleranceS} s of now`);
  const given = signatures.split(" ").filter((one) => one.startsWith("v1,")).map((one) => Buffer.from(one.slice(3), "base64"));
  for (const secret of typeof secrets === "string" ? [secrets] : secrets) {
    const expected = createHmac("sha256", keyOf(secret)).update(`${id}.${at}.`).update(body).digest();
    if (given.some((signature) => signature.length === expected.length && timingSafeEqual(signature, expected))) return id;
  }
  throw new InvalidSignature("no signature is by a secret that was given");
}

function keyOf(secret: string): Buffer {
  const text = secret.startsWith("whsec_") ? secret.slice(6) : secret;
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) throw new TypeError("a secret is whsec_ and base64");
  return Buffer.from(text, "base64");
}

function headerOf(headers: WebhookHeaders, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  for (const [key, value] of Object.entries(headers)) if (key.toLowerCase() === name) return Array.isArray(value) ? value[0] : value;
  return undefined;
}
