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

const QUICK_SCALE = 10, REPEAT_MAX = 50, CALM_LOAD_MAX = 0.5;

function optionsRead(args) {
    const options = { names: [], repeat: 3, quick: false, write: false, big: false, peers: false };
    for (const arg of args) {
        const times = arg.match(/^--repeat=(\d+)$/);
        if (times && Number(times[1]) >= 1 && Number(times[1]) <= REPEAT_MAX)
            options.repeat = Number(times[1]);
        else if (["--quick", "--write", "--big", "--peers"].includes(arg))
            options[arg.slice(2)] = true;
        else if (arg.startsWith("-"))
            throw new Error(`unknown option ${arg}`);
        else
            options.names.push(arg);
    }
    return options;
}

function measuresChosen(context, options) {
    const all = measures(context, options.quick ? QUICK_SCALE : 1);
    const unknown = options.names.filter((name) => !all.some((measure) => measure.name === name));
    if (unknown.length)
        throw new Error(`no measurement ${unknown.join(", ")}; there are: ${all.map((measure) => measure.name).join(", ")}`);
    const chosen = all.filter((measure) => options.names.length ? options.names.includes(measure.name) : !measure.big || options.big);
    return options.peers ? chosen.filter((measure) => measure.contenders.some((contender) => !contender.insist)) : chosen;
}

// Every contender in turn, as often as asked. One that fails is left out of the later turns, and said.
async function measureRun(measure, options, folder) {
    const runs = new Map(), errors = new Map();
    for (let turn = 1; turn <= (measure.repeat ?? options.repeat); turn++) {
        for (const contender of measure.contenders) {
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
