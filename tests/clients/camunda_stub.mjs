// A broker as far as job workers see one: Camunda 8's /v2/jobs and Camunda 7's /engine-rest/external-task, with locks that end.
//   node camunda_stub.mjs PORT_FILE [PORT [JOURNAL]]
// POST /stub/jobs {engine, type, count?, retries?, variables, fault?} adds jobs; GET /stub/jobs shows all, GET /stub/open how many have not
// ended, but of type `stubborn`; POST /stub/faults {path, status?, cut?, half?, huge?, stall?, times} lets the next requests whose path contains
// that fail, or {clear} none; a job's `fault` those that would end it; GET /stub/requests shows what was asked. What it has said it keeps in the
// JOURNAL, also when it is killed.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";

const jobs = new Map(), faults = [], requests = [], waiting = [];
const [portFile, wantedPort, journal] = process.argv.slice(2);
let nextKey = 2251799813685249n;

function keep(job) {
  if (journal) appendFileSync(journal, `${JSON.stringify(job)}\n`);
}
// As a broker's own restart does: the jobs are there, their locks are not.
for (const line of journal && existsSync(journal) ? readFileSync(journal, "utf8").split("\n") : []) {
  if (!line.endsWith("}")) continue; // the last one, cut by a kill: nobody was told of it
  const job = JSON.parse(line);
  jobs.set(job.key, { ...job, lockedUntil: 0 });
  if (BigInt(job.key) >= nextKey) nextKey = BigInt(job.key) + 1n;
}

function find(engine, type, max, lockMs, worker) {
  const found = [];
  for (const job of jobs.values()) {
    if (found.length === max) break;
    if (job.engine !== engine || job.type !== type || job.state !== "open" || job.retries === 0) continue;
    if (job.lockedUntil > Date.now() || job.notBefore > Date.now()) continue;
    Object.assign(job, { lockedUntil: Date.now() + lockMs, worker, given: job.given + 1 });
    found.push(job);
  }
  return found;
}

// Long polls are looked at again whenever something may have come.
function look() {
  for (let i = waiting.length - 1; i >= 0; i--) {
    const wait = waiting[i], found = wait.find();
    if (found.length === 0 && Date.now() < wait.until) continue;
    waiting.splice(i, 1);
    wait.answer(found);
  }
}
setInterval(look, 20);

function send(response, status, body) {
  const text = body === undefined ? "" : JSON.stringify(body);
  response.writeHead(status, { "content-type": status >= 400 ? "application/problem+json" : "application/json", "content-length": Buffer.byteLength(text) });
  response.end(text);
}

function problem(response, status, detail) {
  send(response, status, { type: "about:blank", title: "stub", status, detail });
}

function end(response, engine, key, body, state) {
  const job = jobs.get(key), is7 = engine === 7;
  if (!job || job.engine !== engine) return problem(response, 404, `no job ${key}`);
  if (job.state !== "open") return problem(response, 404, `job ${key} is ${job.state}`);
  if (is7 && job.worker !== body.workerId) return problem(response, 400, "the lock is another's");
  if (is7 && job.lockedUntil <= Date.now()) return problem(response, 400, "the lock has ended");
  job.ended.push({ state, body });
  if (state === "failed") {
    Object.assign(job, { retries: body.retries ?? 0, lockedUntil: 0, notBefore: Date.now() + (body.retryBackOff ?? body.retryTimeout ?? 0) });
    if (job.retries === 0) job.state = "incident";
  } else {
    job.state = state;
  }
  keep(job);
  return send(response, 204);
}

const routes = [
  [/^\/v2\/jobs\/activation$/, (response, body) => {
    if (!body.type || !(body.timeout > 0) || !(body.maxJobsToActivate > 0)) return problem(response, 400, "type, timeout, maxJobsToActivate");
    waiting.push({ until: Date.now() + (body.requestTimeout > 0 ? body.requestTimeout : 0),
      find: () => find(8, body.type, body.maxJobsToActivate, body.timeout, body.worker),
      answer: (found) => send(response, 200, { jobs: found.map((job) => ({ jobKey: job.key, type: job.type, retries: job.retries, worker: body.worker,
        deadline: job.lockedUntil, customHeaders: {}, tenantId: "<default>", processInstanceKey: "2251799813685250", aNewMember: { of: "8.10" },
        processDefinitionId: "claims", processDefinitionVersion: 1, processDefinitionKey: "2251799813685251", elementId: "analyze",
        elementInstanceKey: "2251799813685252", kind: "BPMN_ELEMENT", listenerEventType: "UNSPECIFIED", tags: [],
        variables: Object.fromEntries(Object.entries(job.variables).filter(([name]) => !body.fetchVariable || body.fetchVariable.includes(name))) })) }) });
    look();
  }],
  [/^\/v2\/jobs\/([^/]+)\/completion$/, (response, body, key) => end(response, 8, key, body, "completed")],
  [/^\/v2\/jobs\/([^/]+)\/failure$/, (response, body, key) => end(response, 8, key, body, "failed")],
  [/^\/v2\/jobs\/([^/]+)\/error$/, (response, body, key) => body.errorCode ? end(response, 8, key, body, "error") : problem(response, 400, "errorCode")],
  [/^\/engine-rest\/external-task\/fetchAndLock$/, (response, body) => {
    const topic = body.topics?.[0];
    if (!body.workerId || !(body.maxTasks > 0) || !topic?.topicName || !(topic.lockDuration > 0)) return problem(response, 400, "workerId, maxTasks, topics");
    waiting.push({ until: Date.now() + (body.asyncResponseTimeout ?? 0), find: () => find(7, topic.topicName, body.maxTasks, topic.lockDuration, body.workerId),
      answer: (found) => send(response, 200, found.map((job) => ({ id: job.key, topicName: job.type, workerId: body.workerId, retries: job.given > 1 || job.ended.length ? job.retries : null,
        lockExpirationTime: "2025-10-06T16:34:42.000+0200", processInstanceId: "p", businessKey: null, tenantId: null,
        variables: Object.fromEntries(Object.entries(job.variables).map(([name, value]) => [name, { type: typeof value === "number" ? "Integer" : "String", value, valueInfo: {} }])) }))) });
    look();
  }],
  [/^\/engine-rest\/external-task\/([^/]+)\/complete$/, (response, body, key) => end(response, 7, key, body, "completed")],
  [/^\/engine-rest\/external-task\/([^/]+)\/failure$/, (response, body, key) => end(response, 7, key, body, "failed")],
  [/^\/engine-rest\/external-task\/([^/]+)\/bpmnError$/, (response, body, key) => end(response, 7, key, body, "error")],
  [/^\/stub\/jobs$/, (response, body) => {
    if (!body) return send(response, 200, [...jobs.values()]);
    const keys = [];
    for (let n = 0; n < (body.count ?? 1); n++) {
      const key = String(nextKey++), variables = { ...body.variables };
      if (body.count) variables.claimId = `CLM-${key}`.replace(/^CLM-(.*)(....)$/, "CLM-2025-$1$2");
      jobs.set(key, { key, engine: body.engine, type: body.type, retries: body.retries ?? 3, variables, state: "open", lockedUntil: 0, notBefore: 0, given: 0, ended: [] });
      keep(jobs.get(key));
      if (body.fault) faults.push({ ...body.fault, path: `/${key}/` });
      keys.push(key);
    }
    look();
    return send(response, 200, keys);
  }],
  [/^\/stub\/open$/, (response) => send(response, 200, [...jobs.values()].filter((job) => job.state === "open" && job.type !== "stubborn").length)],
  [/^\/stub\/faults$/, (response, body) => (body.clear ? faults.splice(0) : faults.push(body), send(response, 200, {}))],
  [/^\/stub\/requests$/, (response) => send(response, 200, requests)],
];

function failing(path, response) {
  const at = faults.findIndex((fault) => fault.times > 0 && path.includes(fault.path));
  if (at < 0) return false;
  const fault = faults[at];
  fault.times--;
  if (fault.cut) response.socket.destroy();
  else if (fault.half) {
    response.writeHead(200, { "content-type": "application/json", "content-length": 1000 });
    response.write('{"jobs": [');
    setTimeout(() => response.socket.destroy(), 50);
  } else if (fault.huge) {
    response.writeHead(503, { "content-type": "text/html" });
    response.end("x".repeat(fault.huge));
  } else if (fault.stall) setTimeout(() => response.socket?.destroy(), fault.stall);
  else problem(response, fault.status, "as told");
  return true;
}

const server = createServer((request, response) => {
  let text = "";
  request.on("data", (data) => (text += data));
  request.on("end", () => {
    const path = request.url.split("?")[0];
    if (!path.startsWith("/stub/")) {
      requests.push({ path, body: text, method: request.method, type: request.headers["content-type"], authorization: request.headers.authorization });
      if (requests.length > 2000) requests.shift();
      if (failing(path, response)) return;
    }
    for (const [pattern, handle] of routes) {
      const match = pattern.exec(path);
      if (match) return handle(response, text ? JSON.parse(text) : undefined, match[1] && decodeURIComponent(match[1]));
    }
    problem(response, 404, `no ${path}`);
  });
});
server.keepAliveTimeout = 60000;
server.listen(Number(wantedPort ?? 0), "127.0.0.1", () => writeFileSync(portFile, String(server.address().port)));
