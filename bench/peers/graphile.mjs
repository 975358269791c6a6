// graphile-worker's side of the comparison, in a process of its own: graphile.mjs MODE PORT USER JOBS
//   add       one job a call, 64 calls in flight
//   add_jobs  500 jobs a call, 4 calls in flight
//   work      a task that does nothing, 24 at once, with its defaults
//   queued    the same with a local queue of 500 and completions in batches
// Prints one JSON object. The queue lives in a schema of its own, made anew each time.
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";

const IN_FLIGHT = 64, BATCH = 500, BATCH_IN_FLIGHT = 4, POOL = 16, WARM_UP = 500, CONCURRENCY = 24, LOCAL_QUEUE = 500, EMPTY_MS = 2;
const payload = { payload: "x".repeat(512) };
const [mode, port, user, jobsText] = process.argv.slice(2);
const jobs = Number(jobsText);
const pool = new pg.Pool({ host: "127.0.0.1", port: Number(port), user, database: "postgres", max: POOL });
const seconds = (since) => Number(process.hrtime.bigint() - since) / 1e9;
const logger = new Logger(() => () => {});

async function inFlight(width, count, step, call) {
    let started = 0;
    await Promise.all(Array.from({ length: width }, async () => {
        while (started < count) {
            const length = Math.min(step, count - started);
            started += length;
            await call(length);
        }
    }));
}

// What a job is made of crosses the wire for each of them, as it does for the others.
function fill(task, count) {
    return inFlight(BATCH_IN_FLIGHT, count, BATCH, (length) => pool.query(
        `SELECT count(*) FROM graphile_worker.add_jobs(ARRAY(SELECT json_populate_recordset(null::graphile_worker.job_spec, $1::json)))`,
        [JSON.stringify(Array.from({ length }, () => ({ identifier: task, payload })))]));
}

async function work(options) {
    let done = 0, finished;
    const all = new Promise((resolve) => { finished = resolve; });
    const begin = process.hrtime.bigint();
    const runner = await run({ pgPool: pool, logger, noHandleSignals: true, ...options,
                               taskList: { bench: async () => { if (++done === jobs) finished(); } } });
    await all;
    while (Number((await pool.query("SELECT count(*) FROM graphile_worker._private_jobs")).rows[0].count) > 0)
        await new Promise((resolve) => setTimeout(resolve, EMPTY_MS));
    const took = seconds(begin);
    await runner.stop();
    return took;
}

async function measure(utils) {
    if (mode === "add" || mode === "add_jobs") {
        const add = (task, count) => mode === "add" ? inFlight(IN_FLIGHT, count, 1, () => utils.addJob(task, payload)) : fill(task, count);
        await add("warm", WARM_UP);
        const begin = process.hrtime.bigint();
        await add("bench", jobs);
        return seconds(begin);
    }
    if (mode !== "work" && mode !== "queued")
        throw new Error(`unknown mode ${mode}`);
    await fill("bench", jobs);
    return work(mode === "work" ? { concurrency: CONCURRENCY } : { preset: { worker: {
        concurrentJobs: CONCURRENCY, localQueue: { size: LOCAL_QUEUE }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } } });
}

await pool.query("DROP SCHEMA IF EXISTS graphile_worker CASCADE");
const utils = await makeWorkerUtils({ pgPool: pool, logger });
await utils.migrate();
const took = await measure(utils);
await utils.release();
await pool.end();
console.log(JSON.stringify({ jobs, errors: 0, seconds: took, per_second: jobs / took }));
process.exit(0);
