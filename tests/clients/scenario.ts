// What every client can, with the TypeScript one: node scenario.js SERVER FLAKY REQUEST_FILE SECRET
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Insist, InvalidSignature, Permanent, Problem, Transient, Unreachable, Worker, verifyWebhook, type LeasedJob } from "insist-client";

const [server, flaky, requestFile, secret] = process.argv.slice(2) as [string, string, string, string];
const insist = new Insist({ server });

function check(name: string, fine: boolean, seen: unknown = ""): void {
  console.log(`${fine ? "ok" : "not ok"} - typescript: ${name}${fine ? "" : ` (${JSON.stringify(seen)} ${seen})`}`);
}

async function thrown(call: () => unknown): Promise<unknown> {
  try {
    return `no failure but ${JSON.stringify(await call())}`;
  } catch (error) {
    return error;
  }
}

const one = { destination: "typescript", id: "one/é", tenant: "acme-ts", payload: { n: 1 }, priority: "high" } as const;
check("a job is taken", (await insist.enqueue(one)).created);
check("the same again is the same", !(await insist.enqueue(one)).created);
const problem = await thrown(() => insist.enqueue({ ...one, payload: { n: 2 } }));
check("another body is refused", problem instanceof Problem && problem.type === "id_conflict" && problem.status === 409, problem);
check("a job is shown", (await insist.job("one/é", "acme-ts")).priority === "high");
check("why is told", Boolean((await insist.why("one/é", "acme-ts")).reason));
check("one is cancelled", (await insist.cancel("one/é", "acme-ts")).state === "cancelled");
const gone = await thrown(() => new Insist({ server: "http://127.0.0.1:1", patienceMs: 500 }).enqueue(one));
check("no daemon: unreachable", gone instanceof Unreachable, gone);

const once = await new Insist({ server: `${flaky}/typescript` }).enqueue({ destination: "typescript", payload: Uint8Array.of(0, 255), tenant: "flaky-ts" });
const { jobs: there } = await insist.call<{ jobs: { id: string }[] }>("GET", "/v1/jobs?destination=typescript&tenant=flaky-ts");
check("one job, whatever fails on the way", there.length === 1 && there[0]?.id === once.id && !once.created, there);

function* many() {
  for (let n = 0; n < 2500; n++)
    yield { destination: n === 7 || n === 2100 ? "nowhere" : "typescript", payload: { n }, id: `b${n}`, tenant: "batch-ts", run_at: new Date("2099-01-01") };
}
const batch = await insist.enqueueBatch(many());
check("a batch rejects the bad ones only", batch.accepted === 2498 && batch.rejected.map((bad) => bad.index).join() === "7,2100", batch);

const decision = await insist.decide("tiss", "CLM-2025-1", "TIMEOUT - no answer", { retryCount: 0, record: false });
check("a decision", decision.shouldRetry && decision.errorClassification === "TRANSIENT", decision);

const nobody = await thrown(() => insist.enqueue({ destination: "typescript", payload: 1, callback: { destination: "nowhere" } }));
check("who is told of the end must be there", nobody instanceof Problem && nobody.type === "unknown_destination", nobody);
check("and then is", (await insist.enqueue({ destination: "typescript", payload: 1, tenant: "told-ts", callback: { destination: "mail" }, run_at: "2099-01-01T00:00:00Z" })).created);

for (let n = 0; n < 12; n++) {
  const job = { destination: "typescript", payload: { n }, id: `w${n}`, tenant: "work-ts" };
  await insist.enqueue(n === 4 || n === 9 ? { ...job, key: "pair" } : job);
}
const gaps: string[] = [];
const runs = new Map<string, number>();
let lastBegan = false;

async function handle(job: LeasedJob): Promise<void> {
  const run = (runs.get(job.id) ?? 0) + 1;
  runs.set(job.id, run);
  if (job.gap) gaps.push(`${job.id} of ${job.key}`);
  if (job.id === "w3" && run === 1) throw new Error("TIMEOUT: printer");
  if (job.id === "w4") throw new Permanent("no such label", { code: "NO_LABEL" });
  if (job.id === "w5" && run === 1) throw new Transient("out of paper", { retryAfterS: 1 });
  if (job.id === "w6") await sleep(9000); // longer than its lease
  if (job.id === "last") {
    lastBegan = true;
    await sleep(2000);
  }
}

async function ended(): Promise<boolean> {
  const { tenants } = await insist.call<{ tenants: { tenant: string; pending: number; running: number; waiting: number }[] }>("GET", "/v1/tenants?destination=typescript");
  const mine = tenants.find((row) => row.tenant === "work-ts");
  return mine !== undefined && mine.pending + mine.running + mine.waiting === 0;
}

const worker = new Worker(insist, "typescript", handle, { concurrency: 5, leaseS: 6 });
const running = worker.run();
for (let n = 0; n < 300 && !(await ended()); n++) await sleep(200);
const states: unknown[] = [];
for (let n = 0; n < 12; n++) states.push((await insist.job(`w${n}`, "work-ts")).state);
check("the worker ends them", states.every((state, n) => n === 4 || state === "completed"), states);
const dead = await insist.job("w4", "work-ts");
check("a permanent failure is a dead letter", dead.state === "dead" && dead.last_code === "NO_LABEL", dead);
check("what failed is tried again, what lasts is not", runs.get("w3") === 2 && runs.get("w5") === 2 && runs.get("w6") === 1, [...runs]);
check("the next of its key comes after it, and knows", gaps.join() === "w9 of pair", gaps);
await insist.enqueue({ destination: "typescript", payload: {}, id: "last", tenant: "work-ts" });
for (let n = 0; n < 300 && !lastBegan; n++) await sleep(100);
worker.stop();
await running;
check("a stop lets the last one end", (await insist.job("last", "work-ts")).state === "completed");
check("a worker of nothing says so", (await thrown(() => new Worker(insist, "nowhere", handle).run())) instanceof Problem);

const request = JSON.parse(readFileSync(requestFile, "utf8")) as { headers: Record<string, string>; body: string };
const body = Buffer.from(request.body, "base64");
check("a signature is verified", verifyWebhook(["whsec_AAAA", secret], request.headers, body) !== "");
check("also with Headers", verifyWebhook(secret, new Headers(request.headers), body) !== "");
const bad: [string, string, Record<string, string>, Buffer][] = [
  ["a changed body", secret, request.headers, Buffer.concat([body, Buffer.from(" ")])], ["another secret", "whsec_AAAA", request.headers, body],
  ["an old one", secret, { ...request.headers, "webhook-timestamp": "1614265330" }, body], ["none", secret, {}, body],
];
for (const [name, key, headers, text] of bad) check(`${name} is not`, (await thrown(() => verifyWebhook(key, headers, text))) instanceof InvalidSignature);
