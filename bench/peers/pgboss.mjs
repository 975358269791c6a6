// pg-boss's side of the comparison, in a process of its own: pgboss.mjs MODE PORT USER JOBS
//   send    one job a call, 64 calls in flight
//   insert  500 jobs a call, 4 calls in flight
//   fetch   fetch and complete in batches of 100, 4 in flight
// Prints one JSON object. The queue lives in a schema of its own, made anew each time.
import PgBoss from "pg-boss";
import pg from "pg";

const IN_FLIGHT = 64, BATCH = 100, BATCH_IN_FLIGHT = 4, INSERT = 500, POOL = 16, WARM_UP = 500;
const data = { payload: "x".repeat(512) };
const [mode, port, user, jobsText] = process.argv.slice(2);
const jobs = Number(jobsText);
const server = { host: "127.0.0.1", port: Number(port), user, database: "postgres" };
const seconds = (since) => Number(process.hrtime.bigint() - since) / 1e9;

async function send(boss, queue, count) {
    let started = 0;
    await Promise.all(Array.from({ length: IN_FLIGHT }, async () => {
        while (started < count) {
            started++;
            if (!await boss.send(queue, data))
                throw new Error("send gave no id");
        }
    }));
}

async function fill(boss, queue, count) {
    let started = 0;
    await Promise.all(Array.from({ length: BATCH_IN_FLIGHT }, async () => {
        while (started < count) {
            const length = Math.min(INSERT, count - started);
            started += length;
            await boss.insert(Array.from({ length }, () => ({ name: queue, data })));
        }
    }));
}

async function fetchAndComplete(boss, queue) {
    let done = 0;
    await Promise.all(Array.from({ length: BATCH_IN_FLIGHT }, async () => {
        for (let batch = await boss.fetch(queue, BATCH); batch?.length; batch = await boss.fetch(queue, BATCH)) {
            await boss.complete(batch.map((job) => job.id));
            done += batch.length;
        }
    }));
    return done;
}

async function measure(boss) {
    if (mode === "send") {
        await send(boss, "warm", WARM_UP);
        const begin = process.hrtime.bigint();
        await send(boss, "bench", jobs);
        return seconds(begin);
    }
    await fill(boss, "warm", WARM_UP);
    if (mode === "insert") {
        const begin = process.hrtime.bigint();
        await fill(boss, "bench", jobs);
        return seconds(begin);
    }
    if (mode !== "fetch")
        throw new Error(`unknown mode ${mode}`);
    await fetchAndComplete(boss, "warm");
    await fill(boss, "bench", jobs);
    const begin = process.hrtime.bigint();
    const done = await fetchAndComplete(boss, "bench");
    if (done !== jobs)
        throw new Error(`${done} of ${jobs} jobs were completed`);
    return seconds(begin);
}

const client = new pg.Client(server);
await client.connect();
await client.query("DROP SCHEMA IF EXISTS pgboss CASCADE");
await client.end();
// Upkeep is off: it would only take from what is measured.
const boss = new PgBoss({ ...server, max: POOL, noSupervisor: true, noScheduling: true });
boss.on("error", (error) => { throw error; });
await boss.start();
const took = await measure(boss);
await boss.stop({ graceful: false, destroy: true });
console.log(JSON.stringify({ jobs, errors: 0, seconds: took, per_second: jobs / took }));
process.exit(0);
