// Camunda's own clients on the stub that insist's workers are tried against, as a second opinion of what a broker is told.
//   node camunda_sdk.mjs STUB_PORT
// Type `sdk` is worked for by them alone, `ours` by insist alone, `both` by both at once. Prints what was seen; exits with 1 when it is wrong.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Camunda8 } from "@camunda8/sdk";
import { Client, Variables } from "camunda-external-task-client-js";

const stub = `http://127.0.0.1:${process.argv[2]}`;
const NAMES = ["claimId", "submissionError", "retryCount"];
const DECIDED = { shouldRetry: true, retryCount: 1, nextRetryTime: "2025-01-12T10:51:41.234Z" };
const RETRY = ["TIMEOUT", 0], PERMANENT = ["DUPLICATE_CLAIM", 0], INVALID = ["TIMEOUT", -1];

async function ask(path, body) {
  const answer = await fetch(`${stub}/stub/${path}`, body && { method: "POST", body: JSON.stringify(body) });
  return answer.json();
}

async function add(engine, type, [submissionError, retryCount]) {
  return (await ask("jobs", { engine, type, variables: { claimId: "CLM-2025-000001", submissionError, retryCount } }))[0];
}

async function jobs(keys) {
  return (await ask("jobs")).filter((job) => keys.includes(job.key));
}

async function ended(keys) {
  for (const until = Date.now() + 60000; Date.now() < until; await sleep(100)) {
    const found = await jobs(keys);
    if (found.every((job) => job.state !== "open")) return found;
  }
  throw new Error(`not ended: ${JSON.stringify(await jobs(keys))}`);
}

// What a worker asked for and said, one request of each kind.
async function said(engine, type, keys) {
  const found = {}, top = engine === 8 ? "/v2/" : "/engine-rest/";
  for (const request of (await ask("requests")).filter(({ path }) => path.startsWith(top))) {
    const body = JSON.parse(request.body), kind = request.path.replace(/\/[0-9]{10,}\//, "/KEY/");
    const mine = keys.some((key) => request.path.includes(key)) || body.type === type || body.topics?.some((topic) => topic.topicName === type);
    if (mine) found[kind] = { ...request, body };
  }
  return found;
}

const typeOf = (value) => (Array.isArray(value) ? "array" : value === null ? "null" : typeof value);

// Every member of ours is one of theirs, of the same type.
function sameForm(kind, ours, theirs) {
  for (const [name, value] of Object.entries(ours)) {
    assert.ok(name in theirs, `${kind}: they have no ${name}, but ${Object.keys(theirs)}`);
    assert.equal(typeOf(value), typeOf(theirs[name]), `${kind}: ${name}`);
  }
}

function compare(ours, theirs) {
  assert.deepEqual(Object.keys(ours).sort(), Object.keys(theirs).sort());
  for (const kind of Object.keys(ours)) {
    assert.equal(ours[kind].method, theirs[kind].method, kind);
    assert.equal(ours[kind].type.split(";")[0], theirs[kind].type.split(";")[0], kind);
    sameForm(kind, ours[kind].body, theirs[kind].body);
    const topics = [ours[kind].body.topics?.[0], theirs[kind].body.topics?.[0]];
    if (topics[0]) sameForm(`${kind} topics`, ...topics);
  }
  return Object.keys(ours).length;
}

function worker8(rest, type) {
  return rest.createJobWorker({ type, worker: "sdk", timeout: 10000, maxJobsToActivate: 10, requestTimeout: 5000, pollIntervalMs: 50,
    fetchVariable: NAMES, jobHandler: (job) => {
      const { submissionError, retryCount } = job.variables;
      if (retryCount < 0) return job.fail({ errorMessage: "INVALID_RETRY_COUNT", retries: 0, retryBackOff: 1000 });
      if (submissionError === "DUPLICATE_CLAIM") return job.error({ errorCode: "PERMANENT_ERROR", errorMessage: submissionError, variables: DECIDED });
      return job.complete(DECIDED);
    } });
}

function client7(type) {
  const client = new Client({ baseUrl: `${stub}/engine-rest`, workerId: "sdk", maxTasks: 10, interval: 50, asyncResponseTimeout: 5000, lockDuration: 10000 });
  client.subscribe(type, { variables: NAMES }, async ({ task, taskService }) => {
    const variables = new Variables();
    variables.setAll(DECIDED);
    if (task.variables.get("retryCount") < 0)
      await taskService.handleFailure(task, { errorMessage: "INVALID_RETRY_COUNT", retries: 0, retryTimeout: 1000 });
    else if (task.variables.get("submissionError") === "DUPLICATE_CLAIM")
      await taskService.handleBpmnError(task, "PERMANENT_ERROR", "DUPLICATE_CLAIM", variables);
    else await taskService.complete(task, variables);
  });
  return client;
}

// The same three jobs for both: they end alike, and were told of alike.
async function inTurns(engine) {
  const of = (type) => Promise.all([RETRY, PERMANENT, INVALID].map((variables) => add(engine, type, variables)));
  const theirs = await of("sdk"), ours = await of("ours");
  const states = [(await ended(theirs)).map((job) => job.state), (await ended(ours)).map((job) => job.state)];
  assert.deepEqual(states[0], ["completed", "error", "incident"]);
  assert.deepEqual(states[1], states[0]);
  const kinds = compare(await said(engine, "ours", ours), await said(engine, "sdk", theirs));
  console.log(`engine ${engine}: ${kinds} kinds of requests are alike`);
}

// Both work for one type: locks keep them apart, and every job ends once.
async function together(engine) {
  const keys = await ask("jobs", { engine, type: "both", count: 40, variables: { submissionError: "TIMEOUT", retryCount: 0 } });
  const found = await ended(keys);
  assert.ok(found.every((job) => job.state === "completed" && job.ended.length === 1));
  console.log(`engine ${engine}: ${found.length} jobs of both, each ended once`);
}

// What insist said, put into the client that is made from Camunda's description of its API and checks what it sends and gets.
async function judged(api) {
  const fetched = (await said(8, "ours", []))["/v2/jobs/activation"];
  const types = { completion: (input) => api.completeJob(input), error: (input) => api.throwJobError(input), failure: (input) => api.failJob(input) };
  const keys = (await ask("jobs")).filter((job) => job.type === "ours" && job.engine === 8).map((job) => job.key);
  const ours = await said(8, "none", keys);
  for (const [kind, call] of Object.entries(types)) {
    const body = ours[`/v2/jobs/KEY/${kind}`].body;
    await add(8, "judged", RETRY);
    const got = await api.activateJobs({ ...fetched.body, type: "judged" });
    assert.equal(got.jobs.length, 1);
    const jobKey = got.jobs[0].jobKey;
    await call({ jobKey, ...body });
    assert.deepEqual((await said(8, "none", [jobKey]))[`/v2/jobs/KEY/${kind}`].body, body);
  }
  console.log("Camunda's description takes what insist says");
}

const config = { CAMUNDA_AUTH_STRATEGY: "NONE", CAMUNDA_OAUTH_DISABLED: true, ZEEBE_REST_ADDRESS: stub, CAMUNDA_LOG_LEVEL: "none" };
const c8 = new Camunda8(config), rest = c8.getCamundaRestClient();
const workers = [worker8(rest, "sdk"), worker8(rest, "both")], clients = [client7("sdk"), client7("both")];
try {
  await inTurns(8);
  await inTurns(7);
  await together(8);
  await together(7);
  await judged(c8.getOrchestrationClusterApiClient({ CAMUNDA_REST_ADDRESS: stub, CAMUNDA_SDK_VALIDATION: "req:strict,res:strict" }));
} catch (failure) {
  console.log(failure);
  process.exitCode = 1;
}
clients.forEach((client) => client.stop());
await Promise.all(workers.map((worker) => worker.stop(1000).catch(() => {})));
process.exit();
