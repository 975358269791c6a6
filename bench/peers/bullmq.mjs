// BullMQ's side of the comparison, in a process of its own: bullmq.mjs MODE PORT JOBS [URL]
//   add    one job a call, 64 calls in flight      noop   a worker of concurrency 64 that does nothing
//   bulk   500 a call, 4 calls in flight           http   the same worker, posting each job to URL through undici
// Prints one JSON object. Finished jobs are removed.
import { Queue, Worker } from "bullmq";
import IORedis from "ioredis";
import { Pool } from "undici";

const IN_FLIGHT = 64, BULK = 500, BULK_IN_FLIGHT = 4, WARM_UP = 2000;
const payload = "x".repeat(512);
const options = { removeOnComplete: true, removeOnFail: true };

const [mode, port, jobsText, url] = process.argv.slice(2);
const jobs = Number(jobsText);
const connect = () => new IORedis({ host: "127.0.0.1", port: Number(port), maxRetriesPerRequest: null });
const seconds = (since) => Number(process.hrtime.bigint() - since) / 1e9;

// Runs `call` until it was called `calls` times, `inFlight` at once.
async function repeat(calls, inFlight, call) {
    let started = 0;
    await Promise.all(Array.from({ length: Math.min(inFlight, calls) }, async () => {
        while (started < calls) {
            started++;
            await call();
        }
    }));
}

const addOne = (queue) => () => queue.add("job", { payload }, options);
const addMany = (queue) => () => queue.addBulk(Array.from({ length: BULK }, () => ({ name: "job", data: { payload }, opts: options })));

// Time for the worker to finish `count` jobs that wait already.
async function drain(queueName, count, work) {
    const connection = connect();
    const worker = new Worker(queueName, work, { connection, concurrency: IN_FLIGHT, autorun: false });
    await worker.waitUntilReady();
    let done = 0;
    const finished = new Promise((resolve, reject) => {
        worker.on("completed", () => { if (++done === count) resolve(); });
        worker.on("failed", (job, error) => reject(error));
        worker.on("error", reject);
    });
    const begin = process.hrtime.bigint();
    const running = worker.run();
    await finished;
    const took = seconds(begin);
    await worker.close();
    await running;
    await connection.quit();
    return took;
}

function worker() {
    if (mode === "noop")
        return { work: async () => {}, end: async () => {} };
    const target = new URL(url);
    const pool = new Pool(target.origin, { connections: IN_FLIGHT, pipelining: 1 });
    const work = async (job) => {
        const { statusCode, body } = await pool.request({ path: target.pathname, method: "POST", body: job.data.payload,
                                                          headers: { "content-type": "application/json" } });
        await body.dump();
        if (statusCode !== 200)
            throw new Error(`the receiver answered ${statusCode}`);
    };
    return { work, end: () => pool.close() };
}

async function measure(connection) {
    const warm = new Queue("warm", { connection }), queue = new Queue("bench", { connection });
    await Promise.all([warm.waitUntilReady(), queue.waitUntilReady()]);
    let took;
    if (mode === "add") {
        await repeat(WARM_UP, IN_FLIGHT, addOne(warm));
        const begin = process.hrtime.bigint();
        await repeat(jobs, IN_FLIGHT, addOne(queue));
        took = seconds(begin);
    } else if (mode === "bulk") {
        await repeat(WARM_UP / BULK, BULK_IN_FLIGHT, addMany(warm));
        const begin = process.hrtime.bigint();
        await repeat(jobs / BULK, BULK_IN_FLIGHT, addMany(queue));
        took = seconds(begin);
    } else if (mode === "noop" || mode === "http") {
        const { work, end } = worker();
        await repeat(WARM_UP / BULK, BULK_IN_FLIGHT, addMany(warm));
        await drain("warm", WARM_UP, work);
        await repeat(jobs / BULK, BULK_IN_FLIGHT, addMany(queue));
        took = await drain("bench", jobs, work);
        await end();
    } else {
        throw new Error(`unknown mode ${mode}`);
    }
    if ((mode === "add" || mode === "bulk") && await queue.getWaitingCount() !== jobs)
        throw new Error("not every job is there");
    await Promise.all([warm.close(), queue.close()]);
    return took;
}

if (jobs % BULK !== 0)
    throw new Error(`the number of jobs must divide by ${BULK}`);
const connection = connect();
const took = await measure(connection);
await connection.quit();
console.log(JSON.stringify({ jobs, errors: 0, seconds: took, per_second: jobs / took }));
