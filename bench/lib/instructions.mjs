// Instructions a job, counted by callgrind: what differs by less than a machine's noise. The program runs slowly, so the limit of
// concurrency is fixed where the program knows how: else it would learn from its own slowness.
import { spawnSync } from "node:child_process";
import { chmodSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { Insist } from "./insist.mjs";
import { sleep } from "./servers.mjs";

const FIXED = "{ max: 64, adaptive: false }";

function knowsFixed(program, folder) {
    const file = path.join(folder, "fixed.yaml");
    writeFileSync(file, `store: sqlite:${folder}/fixed/insist.db\ndestinations: { d: { url: "http://127.0.0.1:9/", allow_private: true, concurrency: ${FIXED} } }\n`);
    return spawnSync(program, ["check", "-c", file]).status === 0;
}

function underCallgrind(program, folder) {
    const file = path.join(folder, "insist-callgrind");
    writeFileSync(file, `#!/bin/sh\nexec valgrind --quiet --tool=callgrind --separate-threads=yes --instr-atstart=no ` +
        `--callgrind-out-file='${folder}/counted' '${program}' "$@"\n`);
    chmodSync(file, 0o755);
    return file;
}

function control(pid, ...args) {
    const { stdout, stderr } = spawnSync("callgrind_control", [...args, String(pid)], { encoding: "utf8" });
    if (!/OK/.test(stdout))
        throw new Error(`callgrind_control ${args.join(" ")}: ${stdout}${stderr}`);
}

// `prepare` is not counted, `work` is. All threads together.
export async function instructions(context, folder, jobs, prepare, work) {
    const concurrency = knowsFixed(context.program, folder) ? FIXED : "64";
    const insist = await Insist.start({ program: underCallgrind(context.program, folder), tools: context.tools, folder,
                                        receiverUrl: context.nginx.url, concurrency });
    try {
        await insist.pause("bench");
        await prepare(insist);
        control(insist.server.child.pid, "-i", "on");
        await work(insist);
        control(insist.server.child.pid, "-i", "off");
    } finally {
        await insist.stop();
    }
    const totals = readdirSync(folder).filter((name) => name.startsWith("counted-"))
        .map((name) => Number(readFileSync(path.join(folder, name), "utf8").match(/^totals: (\d+)/m)?.[1] ?? 0));
    return { per_job: totals.reduce((sum, total) => sum + total, 0) / jobs };
}

// The receiver is asked, and seldom: asking the daemon would count.
export async function deliverAll(insist, nginx, jobs) {
    const seen = await nginx.requests();
    await insist.resume("bench");
    while (await nginx.requests() - seen < jobs)
        await sleep(100);
    await sleep(500); // the last outcomes are stored
}
