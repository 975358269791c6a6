// What is measured on PostgreSQL: insist against queues that live there, one node against a store in a file, three nodes against
// one. Every run has a database of its own on a server that is started for it, with its defaults: each commit is synced.
import path from "node:path";
import { performance } from "node:perf_hooks";
import pg from "pg";
import { Insist } from "./insist.mjs";
import { cpuSeconds, freePort, runJson, sleep, startPostgres, startProcess, waitReady } from "./servers.mjs";

const NODES = ["a", "b", "c"], SPREAD = 9, OWNED_MS_MAX = 120000, SLOW_MS = 50, LOOK_MS = 20, CONCURRENCY = 64;
const delivery = { per_second: "jobs/s", cpu_us: "µs of processor a job, nodes and server" };

async function withDatabase(context, run) {
    const server = await startPostgres(context.postgresFolder);
    const ask = async (sql) => {
        const client = new pg.Client({ host: "127.0.0.1", port: server.port, user: server.user, database: "postgres" });
        await client.connect();
        await client.query(sql);
        await client.end();
    };
    try {
        await waitReady(server, () => ask("SELECT 1").then(() => true, () => false)); // it listens before it is ready
        await ask("DROP DATABASE IF EXISTS bench");
        await ask("CREATE DATABASE bench");
        return await run(server, `postgres://${server.user}@127.0.0.1:${server.port}/bench`);
    } finally {
        await server.stop();
    }
}

async function withNodes(context, folder, names, receiverUrl, run) {
    return withDatabase(context, async (server, store) => {
        const started = await Promise.allSettled(names.map((node) => Insist.start({ program: context.program, tools: context.tools,
            folder, receiverUrl, store, node: node ?? undefined, more: SPREAD, concurrency: `{ max: ${CONCURRENCY}, adaptive: false }` })));
        const nodes = started.filter((one) => one.status === "fulfilled").map((one) => one.value);
        try {
            const failed = started.find((one) => one.status === "rejected");
            if (failed)
                throw failed.reason;
            return await run(nodes, server);
        } finally {
            await Promise.all(nodes.map((node) => node.stop()));
        }
    });
}

// Three destinations: of three nodes one each, as they have spread them among themselves.
async function destinationsOf(nodes) {
    const deadline = performance.now() + OWNED_MS_MAX;
    for (;;) {
        const names = Array.from({ length: SPREAD }, (_, i) => `d${i}`), chosen = new Map();
        for (const name of names) {
            const answer = await nodes[0].call("GET", `/v1/destinations/${name}`).catch(() => null); // nobody may own it yet
            if (answer && (answer.owner || !nodes[0].node))
                chosen.set(nodes.length === 1 ? name : answer.owner, name);
        }
        if (chosen.size >= NODES.length)
            return [...chosen.values()].slice(0, NODES.length);
        if (performance.now() > deadline)
            throw new Error(`only ${chosen.size} of ${NODES.length} destinations can be used after ${OWNED_MS_MAX / 1000} s`);
        await sleep(500);
    }
}

const cpuOf = (nodes, server) => nodes.reduce((sum, node) => sum + node.cpuSeconds(), 0) +
    (server ? cpuSeconds(server.child.pid, true) : 0);

// A node that has just started owns nothing for a moment.
async function pause(node, name) {
    for (const deadline = performance.now() + OWNED_MS_MAX;; await sleep(100)) {
        const failed = await node.pause(name).then(() => null, (error) => error);
        if (!failed)
            return;
        if (performance.now() > deadline)
            throw failed;
    }
}

// From the first send until the receiver has seen all of them; then they must all be completed.
async function deliver(nodes, server, destinations, jobs, seen) {
    for (const name of destinations) {
        await pause(nodes[0], name);
        await nodes[0].load("batch", "--jobs", jobs / destinations.length, "--destination", name);
    }
    const before = await seen(), cpu = cpuOf(nodes, server), begin = performance.now();
    await Promise.all(destinations.map((name) => nodes[0].resume(name)));
    for (const deadline = begin + 120000; await seen() - before < jobs; await sleep(LOOK_MS))
        if (performance.now() > deadline)
            throw new Error(`${await seen() - before} of ${jobs} were delivered in 120 s`);
    const seconds = (performance.now() - begin) / 1000, used = cpuOf(nodes, server) - cpu;
    for (const name of destinations)
        await nodes[0].waitCounts(name, (counts) => counts.completed >= jobs / destinations.length);
    return { seconds, per_second: jobs / seconds, cpu_us: used / jobs * 1e6 };
}

async function deliverSlowly(context, folder, names, jobs) {
    const port = await freePort(), url = `http://127.0.0.1:${port}/`;
    const receiver = startProcess("receiver", folder, process.execPath,
        [path.join(context.bench, "receiver.mjs"), port, JSON.stringify({ latency: SLOW_MS })]);
    const good = () => fetch(url).then((answer) => answer.json()).then((seen) => seen.good);
    try {
        await waitReady(receiver, () => good().then(() => true, () => false));
        return await withNodes(context, folder, names, url, async (nodes, server) =>
            deliver(nodes, server, await destinationsOf(nodes), jobs, good));
    } finally {
        await receiver.stop();
    }
}

export function postgresMeasures(context, count) {
    const { nginx, bench } = context;
    const jobs = count(21000) - count(21000) % 3;
    const peer = (name, script, mode, jobsOf) => ({ name, figures: { per_second: "jobs/s" }, run: () => withDatabase(context, (server) =>
        runJson(context.postgresFolder, process.execPath, [path.join(bench, "peers", script), mode, server.port, server.user, jobsOf])) });
    const own = (name, run, figures = { per_second: "jobs/s" }) => ({ name, run, figures, insist: true, alone: true });
    const single = (name, run) => own(name, (folder) => withNodes(context, folder, [null], nginx.url, ([insist]) => run(insist)));
    const delivers = (name, names) => own(name, (folder) => withNodes(context, folder, names, nginx.url, async (nodes, server) =>
        deliver(nodes, server, await destinationsOf(nodes), jobs, nginx.requests)), delivery);
    const slowly = (name, names) => own(name, (folder) => deliverSlowly(context, folder, names, jobs), delivery);
    const ratio = (insist, other, atLeast, aim) => ({ label: `${insist} / ${other}`, of: (f) => f(insist) / f(other), at_least: atLeast, aim });

    return [
        {
            name: "postgres", title: "On PostgreSQL: one job a call, 64 in flight, 512-byte payload",
            contenders: [
                single("insist", async (insist) => {
                    await insist.pause("bench");
                    return insist.load("enqueue", "--jobs", count(20000));
                }),
                peer("pg-boss send", "pgboss.mjs", "send", count(5000)),
                peer("graphile-worker addJob", "graphile.mjs", "add", count(5000)),
            ],
            checks: [ratio("insist", "pg-boss send", 6, 10), ratio("insist", "graphile-worker addJob")],
        },
        {
            name: "postgres", title: "On PostgreSQL: in bulk, 500 a call, 4 in flight, 512-byte payload",
            contenders: [
                single("insist batch", async (insist) => {
                    await insist.pause("bench");
                    return insist.load("batch", "--jobs", count(50000));
                }),
                peer("pg-boss insert", "pgboss.mjs", "insert", count(50000)),
                peer("graphile-worker add_jobs", "graphile.mjs", "add_jobs", count(50000)),
            ],
            checks: [ratio("insist batch", "pg-boss insert", 1.3, 2), ratio("insist batch", "graphile-worker add_jobs", 1, 2)],
        },
        {
            name: "postgres", title: "On PostgreSQL: lease and acknowledge, 100 a call, 4 in flight",
            contenders: [
                single("insist lease + ack", async (insist) => {
                    await insist.load("batch", "--jobs", count(30000), "--destination", "pull");
                    return insist.load("lease", "--jobs", count(30000), "--destination", "pull");
                }),
                peer("pg-boss fetch + complete", "pgboss.mjs", "fetch", count(20000)),
                peer("graphile-worker", "graphile.mjs", "work", count(10000)),
                peer("graphile-worker, local queue", "graphile.mjs", "queued", count(20000)),
            ],
            checks: [ratio("insist lease + ack", "pg-boss fetch + complete", 2, 3), ratio("insist lease + ack", "graphile-worker", 8),
                     ratio("insist lease + ack", "graphile-worker, local queue", 0.7, 1)],
        },
        {
            name: "postgres", title: `Delivery of a backlog of ${jobs} jobs to three destinations at nginx, concurrency ${CONCURRENCY} each`,
            contenders: [
                own("in a file", async (folder) => {
                    const insist = await Insist.start({ program: context.program, tools: context.tools, folder, receiverUrl: nginx.url,
                        more: SPREAD, concurrency: `{ max: ${CONCURRENCY}, adaptive: false }` });
                    try {
                        return await deliver([insist], null, await destinationsOf([insist]), jobs, nginx.requests);
                    } finally {
                        await insist.stop();
                    }
                }, delivery),
                delivers("one on PostgreSQL", [null]),
                delivers("one node", NODES.slice(0, 1)),
                delivers("three nodes", NODES),
            ],
            checks: [ratio("one on PostgreSQL", "in a file", 0.35, 0.5), ratio("one node", "in a file", 0.35, 0.5),
                     ratio("three nodes", "one node", 0.9),
                     ...["one node", "three nodes"].map((name) => ({ label: `${name}: processor a job`, of: (f) => f(name, "cpu_us"), below: 90,
                                                                     unit: "µs" }))],
        },
        {
            name: "postgres", title: `The same to receivers that take ${SLOW_MS} ms: ${NODES.length * CONCURRENCY * 1000 / SLOW_MS} a second are possible`,
            contenders: [slowly("one node, slow", NODES.slice(0, 1)), slowly("three nodes, slow", NODES)],
            checks: ["one node, slow", "three nodes, slow"].map((name) => ({ label: `${name} / what is possible`,
                of: (f) => f(name) / (NODES.length * CONCURRENCY * 1000 / SLOW_MS), at_least: 0.9 })),
        },
    ];
}
