// What is measured. A measure has contenders, each measured in turn so that a noisy minute hits all of them, and checks
// against the targets. A contender's `run` returns the figures that its `figures` name; `insist: true` needs the daemon.
import path from "node:path";
import { performance } from "node:perf_hooks";
import { Insist } from "./insist.mjs";
import { deliverAll, instructions } from "./instructions.mjs";
import { postgresMeasures } from "./postgres.mjs";
import { freePort, linesOf, runFiles, runJson, sleep, startBeanstalkd, startPostgres, startProcess, startRedis, waitReady } from "./servers.mjs";

const perSecond = { per_second: "jobs/s" };
const presets = ["tiss", "email", "sifen", "provisioning"];
const patterns = { backlog: "all have work", sparse: "one job each", limited: "each at its rate" }; // of bench/turns.c

function makers(context) {
    const { tools, bench, nginx } = context;

    // A fresh store and a fresh daemon for every run, as the peers have.
    const withInsist = (run) => async (folder) => {
        const insist = await Insist.start({ program: context.program, tools, folder, receiverUrl: nginx.url });
        try {
            return await run(insist, folder);
        } finally {
            await insist.stop();
        }
    };
    const bullmq = (mode, jobs) => async (folder) => {
        const redis = await startRedis(folder);
        try {
            return await runJson(folder, process.execPath, [path.join(bench, "peers/bullmq.mjs"), mode, redis.port, jobs, nginx.url]);
        } finally {
            await redis.stop();
        }
    };
    const beanstalkd = (fsyncMs, jobs) => async (folder) => {
        const server = await startBeanstalkd(folder, fsyncMs);
        try {
            return await runJson(folder, path.join(tools, "load"), ["beanstalk", "--port", server.port, "--jobs", jobs]);
        } finally {
            await server.stop();
        }
    };
    const pgboss = (mode, jobs) => async () => {
        const postgres = await startPostgres(context.postgresFolder);
        try {
            return await runJson(context.postgresFolder, process.execPath,
                [path.join(bench, "peers/pgboss.mjs"), mode, postgres.port, postgres.user, jobs]);
        } finally {
            await postgres.stop();
        }
    };
    return { withInsist, bullmq, beanstalkd, pgboss };
}

// Time from resume until the daemon says that all are completed; the receiver must have seen them too.
async function deliverBacklog(insist, nginx, jobs) {
    await insist.pause("bench");
    await insist.load("batch", "--jobs", jobs);
    const seen = await nginx.requests(), begin = performance.now();
    await insist.resume("bench");
    const { at } = await insist.waitCounts("bench", (counts) => counts.completed >= jobs);
    const arrived = await nginx.requests() - seen;
    if (arrived < jobs)
        throw new Error(`${jobs} completed, but the receiver saw ${arrived}`);
    const seconds = (at - begin) / 1000;
    return { seconds, per_second: jobs / seconds };
}

// The rate while `jobs` are delivered, without the start and the end.
async function steadyRate(insist, jobs) {
    const first = await insist.waitCounts("bench", (counts) => counts.completed >= jobs * 0.05);
    const last = await insist.waitCounts("bench", (counts) => counts.completed >= jobs * 0.9);
    return (last.completed - first.completed) / ((last.at - first.at) / 1000);
}

async function bigBacklog(context, folder, backlog) {
    const options = { program: context.program, tools: context.tools, folder, receiverUrl: context.nginx.url };
    let insist = await Insist.start(options);
    let loaded;
    try {
        await insist.pause("bench");
        loaded = await insist.load("batch", "--jobs", backlog, "--seconds", 1800);
        loaded.rss_mb = insist.rssMb();
    } finally {
        await insist.stop();
    }
    const seen = await context.nginx.requests();
    insist = await Insist.start(options);
    try {
        // A pause may outlive a restart or not: either way the clock runs from the start of the process.
        if ((await insist.counts("bench")).mode === "paused")
            await insist.resume("bench");
        for (const deadline = performance.now() + 120000; await context.nginx.requests() === seen; await sleep(1))
            if (performance.now() > deadline)
                throw new Error("nothing was dispatched within 120 s");
        const firstSeconds = (performance.now() - insist.startedAt) / 1000;
        const rate = await steadyRate(insist, 10000);
        return { enqueue: loaded.per_second, rss_loaded: loaded.rss_mb, rss: insist.rssMb(), ready: insist.readyMs / 1000,
                 first: firstSeconds, rate };
    } finally {
        await insist.stop();
    }
}

async function idleShare(insist, jobs, seconds) {
    const runAt = new Date(Date.now() + 3600e3).toISOString();
    await insist.load("batch", "--jobs", jobs, "--extra", `"run_at":"${runAt}"`);
    await sleep(2000); // let what follows the load settle
    const before = insist.cpuSeconds(), begin = performance.now();
    await sleep(seconds * 1000);
    return { cpu: (insist.cpuSeconds() - before) / ((performance.now() - begin) / 1000) * 100, rss: insist.rssMb() };
}

// How a receiver with a weakness fares after the first seconds: deliveries a second, how many of all were refused, and how many
// times its best a good answer took.
async function weakReceiver(context, folder, weakness, concurrency, seconds) {
    const port = await freePort(), url = `http://127.0.0.1:${port}/`;
    const receiver = startProcess("receiver", folder, process.execPath, [path.join(context.bench, "receiver.mjs"), port, JSON.stringify(weakness)]);
    const seen = () => fetch(url).then((answer) => answer.json());
    await waitReady(receiver, () => seen().then(() => true, () => false));
    const insist = await Insist.start({ program: context.program, tools: context.tools, folder, receiverUrl: url, concurrency });
    try {
        await insist.pause("bench");
        await insist.load("batch", "--jobs", 4000 * (seconds + 10));
        await insist.resume("bench");
        await sleep(10000);
        const before = await seen(), begin = performance.now();
        await sleep(seconds * 1000);
        const after = await seen(), elapsed = (performance.now() - begin) / 1000;
        const good = after.good - before.good, refused = after.refused - before.refused;
        return { per_second: good / elapsed, refused: refused / (refused + good) * 100,
                 times: (after.latency_ms - before.latency_ms) / good / 20 };
    } finally {
        await insist.stop();
        await receiver.stop();
    }
}

// From a file to a file, so that nothing but the program is measured.
async function batchRate(context, folder, lines) {
    const questions = path.join(folder, "questions"), answers = path.join(folder, "answers");
    await runFiles(path.join(context.tools, "decide"), ["lines", lines], "/dev/null", questions);
    const begin = performance.now();
    await runFiles(context.program, ["decide", "--batch"], questions, answers);
    const seconds = (performance.now() - begin) / 1000, answered = linesOf(answers);
    if (answered !== lines)
        throw new Error(`${lines} questions, ${answered} answers`);
    return { per_second: lines / seconds };
}

const ratio = (insist, peer, atLeast, aim) => ({ label: `${insist} / ${peer}`, of: (f) => f(insist) / f(peer), at_least: atLeast, aim });

export function measures(context, scale) {
    const { withInsist, bullmq, beanstalkd, pgboss } = makers(context);
    const count = (full) => Math.max(1000, Math.round(full / scale / 1000) * 1000);
    const { nginx, tools } = context;
    const delivered = count(20000), backlog = scale > 1 ? 200000 : 5000000;
    const contender = (name, run, figures = perSecond) => ({ name, run, figures });
    const own = (name, run, figures = perSecond) => ({ name, run, figures, insist: true });
    const enqueue = (...args) => withInsist(async (insist) => {
        await insist.pause("bench");
        return insist.load("enqueue", "--jobs", count(40000), ...args);
    });
    // Only the one without a weakness is compared with another program: the others are held to it.
    const weak = (name, weakness, concurrency) => ({
        ...own(name, (folder) => weakReceiver(context, folder, weakness, concurrency, scale > 1 ? 3 : 5),
            { per_second: "deliveries/s", refused: "% refused", times: "× its best time" }),
        alone: weakness.fails !== 0,
    });
    const counted = (name, jobs, prepare, work) => own(name, (folder) => instructions(context, folder, jobs, prepare, work),
        { per_job: "instructions a job" });
    const below1000 = (name) => ({ label: name, of: (f) => f(name), below: 1000, unit: "ns" });
    const lanesWith = (lanes, pattern) => `${lanes} lanes, ${patterns[pattern]}`;

    return [
        {
            name: "enqueue", title: "Durable enqueue, one job a call, 64 in flight, 512-byte payload",
            contenders: [
                own("insist", enqueue()),
                contender("BullMQ add", bullmq("add", count(40000))),
                own("insist, random ids", enqueue("--ids")),
                contender("beanstalkd -f 0", beanstalkd(0, count(10000))),
                contender("beanstalkd -f 50", beanstalkd(50, count(40000))),
                contender("pg-boss send", pgboss("send", count(5000))),
            ],
            checks: [ratio("insist", "BullMQ add", 1.3, 1.5), ratio("insist, random ids", "BullMQ add", 1.0, 1.5),
                     ratio("insist", "beanstalkd -f 0"), ratio("insist", "beanstalkd -f 50"), ratio("insist", "pg-boss send")],
        },
        {
            name: "bulk", title: "Enqueue in bulk, 500 a call, 4 in flight, 512-byte payload",
            contenders: [
                own("insist batch", withInsist(async (insist) => {
                    await insist.pause("bench");
                    return insist.load("batch", "--jobs", count(200000));
                })),
                contender("BullMQ addBulk", bullmq("bulk", count(50000))),
            ],
            checks: [ratio("insist batch", "BullMQ addBulk", 4)],
        },
        {
            name: "deliver", title: `Delivery of a backlog of ${delivered} jobs to nginx, concurrency 64`,
            contenders: [
                own("insist http", withInsist((insist) => deliverBacklog(insist, nginx, delivered))),
                contender("BullMQ worker + undici", bullmq("http", delivered)),
                contender("bare libcurl loop", (folder) => runJson(folder, path.join(tools, "curl_loop"), [nginx.url, delivered, 64])),
            ],
            checks: [ratio("insist http", "BullMQ worker + undici", 2), ratio("insist http", "bare libcurl loop", 0.7)],
        },
        {
            name: "pull", title: "Pull workers: lease and acknowledge, 100 a call, 4 in flight",
            contenders: [
                own("insist lease + ack", withInsist(async (insist) => {
                    await insist.load("batch", "--jobs", count(50000), "--destination", "pull");
                    return insist.load("lease", "--jobs", count(50000), "--destination", "pull");
                })),
                contender("BullMQ no-op worker", bullmq("noop", delivered)),
                contender("pg-boss fetch + complete", pgboss("fetch", count(10000))),
            ],
            checks: [ratio("insist lease + ack", "BullMQ no-op worker", 2), ratio("insist lease + ack", "pg-boss fetch + complete")],
        },
        ...postgresMeasures(context, count),
        {
            name: "concurrency", title: "How many at once: receivers of 20 ms with a weakness, concurrency 64, after ten seconds",
            contenders: [
                ...[0, 0.001, 0.01, 0.05, 0.2].map((fails) => weak(`${fails * 100} % fail`, { fails })),
                ...[8, 20, 40].flatMap((most) => [weak(`refuses beyond ${most}`, { refuses_beyond: most }),
                    weak(`refuses beyond ${most}, told so`, { refuses_beyond: most }, `{ max: ${most}, adaptive: false }`)]),
                ...[8, 20, 40].flatMap((most) => [weak(`slows beyond ${most}`, { slows_beyond: most }),
                    weak(`slows beyond ${most}, told so`, { slows_beyond: most }, `{ max: ${most}, adaptive: false }`)]),
            ],
            checks: [
                ...[0.001, 0.01, 0.05, 0.2].map((fails) => ratio(`${fails * 100} % fail`, "0 % fail", Math.round(900 * (1 - fails)) / 1000)),
                ...[8, 20, 40].flatMap((most) => [ratio(`refuses beyond ${most}`, `refuses beyond ${most}, told so`, 0.85),
                    { label: `refused beyond ${most}`, of: (f) => f(`refuses beyond ${most}`, "refused"), below: 5, unit: "%" },
                    ratio(`slows beyond ${most}`, `slows beyond ${most}, told so`, 0.8),
                    { label: `slows beyond ${most}: times its best`, of: (f) => f(`slows beyond ${most}`, "times"), below: 2, unit: "×" }]),
            ],
        },
        {
            name: "latency", title: "From acknowledgement to the first byte at an idle destination",
            contenders: [own("insist", withInsist((insist) => insist.latency(scale > 1 ? 200 : 1000)),
                             { p50_ms: "ms, median", p99_ms: "ms, 99th percentile", whole_p50_ms: "ms from the request on, median" })],
            checks: [{ label: "median", of: (f) => f("insist", "p50_ms"), below: 5, unit: "ms" }],
        },
        {
            name: "idle", title: `${count(100000)} jobs that wait for a later time`,
            contenders: [own("insist", withInsist((insist) => idleShare(insist, count(100000), scale > 1 ? 5 : 20)),
                             { cpu: "% of a core", rss: "MB resident" })],
            checks: [{ label: "processor share", of: (f) => f("insist", "cpu"), below: 1, unit: "%" }],
        },
        {
            name: "big", title: `A backlog of ${backlog} jobs`, apart: true, repeat: 1,
            contenders: [
                own("backlog of 10000", withInsist(async (insist) => {
                    await insist.pause("bench");
                    await insist.load("batch", "--jobs", 10000);
                    await insist.resume("bench");
                    return { rate: await steadyRate(insist, 10000) };
                }), { rate: "deliveries/s" }),
                own("big backlog", (folder) => bigBacklog(context, folder, backlog),
                    { enqueue: "jobs/s enqueued", rss_loaded: "MB resident when full", ready: "s from start to ready",
                      first: "s from start to first dispatch", rate: "deliveries/s", rss: "MB resident while delivering" }),
            ],
            checks: [{ label: "rate with the big backlog / with 10000", of: (f) => f("big backlog", "rate") / f("backlog of 10000", "rate"),
                       at_least: 0.7 }],
        },
        {
            name: "instructions", title: "Instructions a job in all threads, by callgrind", apart: true,
            contenders: [
                counted("enqueue", count(5000), () => {}, (insist) => insist.load("enqueue", "--jobs", count(5000))),
                counted("bulk", count(20000), () => {}, (insist) => insist.load("batch", "--jobs", count(20000))),
                counted("deliver", count(5000), (insist) => insist.load("batch", "--jobs", count(5000)),
                    (insist) => deliverAll(insist, nginx, count(5000))),
                counted("lease + ack", count(5000), (insist) => insist.load("batch", "--jobs", count(5000), "--destination", "pull"),
                    (insist) => insist.load("lease", "--jobs", count(5000), "--destination", "pull")),
            ],
            checks: [],
        },
        {
            name: "decide", title: "The decision about a failed attempt",
            contenders: [
                ...presets.map((preset) => own(`insist_decide, ${preset}`, (folder) =>
                    runJson(folder, path.join(tools, "decide"), ["time", preset, count(200000)]), { ns: "ns a decision" })),
                own("insist decide --batch", (folder) => batchRate(context, folder, count(500000)), { per_second: "lines/s" }),
            ],
            checks: [...presets.map((preset) => below1000(`insist_decide, ${preset}`)),
                     { label: "insist decide --batch", of: (f) => f("insist decide --batch"), at_least: 150000, unit: "lines/s" }],
        },
        {
            name: "turns", title: "Whose turn it is and whether it may be sent now",
            contenders: [10000, 100000].flatMap((lanes) => Object.keys(patterns).map((pattern) => own(lanesWith(lanes, pattern), (folder) =>
                runJson(folder, path.join(tools, "turns"), [pattern, lanes, count(500000)]), { ns: "ns a dispatch" }))),
            checks: Object.keys(patterns).map((pattern) => below1000(lanesWith(10000, pattern))),
        },
    ];
}
