// Runs the measurements and shows them. bench/run prepares what this needs and starts it.
import { accessSync, constants, mkdirSync, mkdtempSync, chmodSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { document } from "./lib/document.mjs";
import { machine, syncMs } from "./lib/machine.mjs";
import { measures } from "./lib/measures.mjs";
import { number, summarize, terminal } from "./lib/report.mjs";
import { makeFolder, startNginx, stopAll } from "./lib/servers.mjs";

const QUICK_SCALE = 10, REPEAT_MAX = 50, CALM_LOAD_MAX = 0.5, BEFORE_MIN = 0.95;
// Figures to compare; a delay from the request on, since who acknowledges sooner has more left to do until the first byte.
const MORE_IS_BETTER = ["per_second", "rate", "enqueue"], LESS_IS_BETTER = ["ns", "whole_p50_ms", "per_job"];

function optionsRead(args) {
    const options = { names: [], repeat: 3, quick: false, write: false, big: false, peers: false, before: null };
    for (const arg of args) {
        const times = arg.match(/^--repeat=(\d+)$/);
        if (times && Number(times[1]) >= 1 && Number(times[1]) <= REPEAT_MAX)
            options.repeat = Number(times[1]);
        else if (arg.startsWith("--before="))
            options.before = arg.slice("--before=".length);
        else if (["--quick", "--write", "--big", "--peers"].includes(arg))
            options[arg.slice(2)] = true;
        else if (arg.startsWith("-"))
            throw new Error(`unknown option ${arg}`);
        else
            options.names.push(arg);
    }
    return options;
}

// The other program's contender after each of this one's, and how they compare.
function withBefore(measure, earlier) {
    const pairs = measure.contenders.map((contender, i) => contender.insist && !contender.alone
        ? [contender, { ...earlier.contenders[i], name: `${contender.name}, before` }] : [contender]);
    const compared = (contender, key, less) => ({
        label: `${contender.name}: ${less ? "before / now" : "now / before"}`, at_least: BEFORE_MIN, less,
        of: (f) => less ? f(`${contender.name}, before`, key) / f(contender.name, key) : f(contender.name, key) / f(`${contender.name}, before`, key),
    });
    const checks = pairs.filter((pair) => pair.length === 2).flatMap(([contender]) => Object.keys(contender.figures)
        .filter((key) => [...MORE_IS_BETTER, ...LESS_IS_BETTER].includes(key))
        .map((key) => compared(contender, key, LESS_IS_BETTER.includes(key))));
    return { ...measure, contenders: pairs.flat(), checks: [...measure.checks, ...checks] };
}

function measuresChosen(context, options) {
    const scale = options.quick ? QUICK_SCALE : 1;
    const earlier = options.before && measures({ ...context, program: path.join(options.before, "build/insist"),
                                                 tools: path.join(context.tools, "before") }, scale);
    const all = measures(context, scale).map((measure, i) => earlier ? withBefore(measure, earlier[i]) : measure);
    const unknown = options.names.filter((name) => !all.some((measure) => measure.name === name));
    if (unknown.length)
        throw new Error(`no measurement ${unknown.join(", ")}; there are: ${all.map((measure) => measure.name).join(", ")}`);
    const chosen = all.filter((measure) => options.names.length ? options.names.includes(measure.name)
        : !measure.apart || (measure.name === "big" && options.big));
    return options.peers ? chosen.filter((measure) => measure.contenders.some((contender) => !contender.insist)) : chosen;
}

// Every contender in turn, as often as asked, every other time from the last to the first: a machine may be slower after one than after
// another. One that fails is left out of the later turns, and said.
async function measureRun(measure, options, folder) {
    const runs = new Map(), errors = new Map();
    for (let turn = 1; turn <= (measure.repeat ?? options.repeat); turn++) {
        for (const contender of turn % 2 ? measure.contenders : measure.contenders.toReversed()) {
            if ((contender.insist && options.peers) || errors.has(contender.name))
                continue;
            const place = makeFolder(folder, `${measure.name}-${contender.name.replace(/\W+/g, "-")}-${turn}`);
            try {
                const result = await contender.run(place);
                runs.set(contender.name, [...runs.get(contender.name) ?? [], result]);
                const [key, unit] = Object.entries(contender.figures)[0];
                process.stderr.write(`  ${measure.name} ${turn}: ${contender.name} ${number(result[key])} ${unit}\n`);
            } catch (error) {
                errors.set(contender.name, error.message);
                process.stderr.write(`  ${measure.name} ${turn}: ${contender.name} FAILED: ${error.message}\n`);
            }
            rmSync(place, { recursive: true, force: true });
        }
    }
    return { summary: summarize(measure, runs, errors), failed: errors.size };
}

async function main(options) {
    const bench = path.dirname(fileURLToPath(import.meta.url)), root = path.dirname(bench);
    const program = path.resolve(process.env.INSIST ?? path.join(root, "build/insist"));
    if (!options.peers) {
        try {
            accessSync(program, constants.X_OK);
        } catch {
            throw new Error(`${program} is not there: build it with make, or measure only the others with --peers`);
        }
    }
    const folder = mkdtempSync(path.join(process.env.BENCH_TMP ?? tmpdir(), "insist-bench-"));
    chmodSync(folder, 0o755); // PostgreSQL's own user must get through
    const clean = async () => {
        await stopAll();
        rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    };
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
        process.on(signal, () => clean().finally(() => process.exit(1)));
    try {
        const nginx = await startNginx(makeFolder(folder, "nginx"));
        const context = { bench, tools: path.join(root, "build/bench"), program: options.peers ? null : program, nginx,
                          postgresFolder: makeFolder(folder, "postgres") };
        const chosen = measuresChosen(context, options), about = machine(context, folder), summaries = [];
        console.log(`${about.processor}, ${about.system}\n${about.disk}, 4 KB write and fdatasync ${number(about.syncs[0])} ms\n${about.versions}`);
        if (about.load > CALM_LOAD_MAX)
            console.log(`The machine is busy (load ${number(about.load)}): expect noise.`);
        let failed = 0;
        for (const measure of chosen) {
            const result = await measureRun(measure, options, folder);
            failed += result.failed;
            summaries.push(result.summary);
            console.log(terminal(result.summary));
        }
        const missed = summaries.flatMap((summary) => summary.checks.filter((check) => check.met === "missed")
            .map((check) => `${summary.name}: ${check.label} ${number(check.value)} ${check.unit} (${check.target})`));
        console.log(`\nMissed: ${missed.join("; ") || "nothing"}`);
        about.syncs.push(syncMs(folder));
        console.log(`\n4 KB write and fdatasync, at the end: ${number(about.syncs[1])} ms`);
        if (options.write) {
            mkdirSync(path.join(root, "docs"), { recursive: true });
            writeFileSync(path.join(root, "docs/benchmarks.md"), document(about, summaries, options));
        }
        return failed ? 1 : 0;
    } finally {
        await clean();
    }
}

try {
    process.exit(await main(optionsRead(process.argv.slice(2))));
} catch (error) {
    console.error(`bench: ${error.message}`);
    process.exit(1);
}
