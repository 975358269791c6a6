// The daemon under measurement: how it is started and the few calls that the measurements need.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { performance } from "node:perf_hooks";
import path from "node:path";
import { cpuSeconds, freePort, runJson, sleep, startProcess, waitReady } from "./servers.mjs";

function configuration({ folder, port, receiverUrl, latencyPort, concurrency, store, node, more }) {
    const extra = Array.from({ length: more }, (_, i) => `  d${i}:
    url: ${receiverUrl}
    allow_private: true
    concurrency: ${concurrency}
`).join("");
    return `listen: 127.0.0.1:${port}
store: ${store ?? `sqlite:${folder}/store/insist.db`}
durability: always
${node ? `node: { name: ${node} }\n` : ""}destinations:
  bench:
    transport: http
    url: ${receiverUrl}
    allow_private: true
    concurrency: ${concurrency}
  latency:
    transport: http
    url: http://127.0.0.1:${latencyPort}/
    allow_private: true
    concurrency: 64
  pull:
    transport: pull
${extra}`;
}

export class Insist {
    // Starts the program on the folder's store, which it makes when it is not there, or on another, and waits until it is ready.
    // `node`: its name among several; `more`: so many destinations d0, d1, … besides.
    static async start({ program, tools, folder, receiverUrl, concurrency = "64", store, node, more = 0 }) {
        const insist = new Insist();
        insist.port = await freePort();
        insist.latencyPort = await freePort();
        insist.tools = tools;
        insist.node = node;
        insist.folder = folder;
        const file = path.join(folder, `insist${node ?? ""}.yaml`);
        writeFileSync(file, configuration({ folder, port: insist.port, receiverUrl, latencyPort: insist.latencyPort, concurrency,
                                            store, node, more }));
        mkdirSync(path.join(folder, "store"), { recursive: true }); // a new store wants an empty folder
        insist.startedAt = performance.now();
        insist.server = startProcess(`insist${node ?? ""}`, folder, program, ["serve", "-c", file], { cwd: folder });
        await waitReady(insist.server, () => fetch(insist.url("/readyz")).then((answer) => answer.ok, () => false));
        insist.readyMs = performance.now() - insist.startedAt;
        return insist;
    }

    stop() {
        return this.server.stop();
    }

    url(call) {
        return `http://127.0.0.1:${this.port}${call}`;
    }

    async call(method, call) {
        const answer = await fetch(this.url(call), { method, headers: { "content-type": "application/json" },
                                                     body: method === "POST" ? "{}" : undefined });
        const text = await answer.text();
        if (!answer.ok)
            throw new Error(`${method} ${call}: ${answer.status} ${text.slice(0, 300)}`);
        return text ? JSON.parse(text) : null;
    }

    pause(destination) {
        return this.call("POST", `/v1/destinations/${destination}/pause`);
    }

    resume(destination) {
        return this.call("POST", `/v1/destinations/${destination}/resume`);
    }

    // The one place that knows where a destination's counts are in the answer.
    async counts(destination) {
        const answer = await this.call("GET", `/v1/destinations/${destination}`);
        const { pending, running, waiting, dead, completed } = { ...answer, ...answer.counts };
        if (!Number.isFinite(completed))
            throw new Error(`GET /v1/destinations/${destination} shows no count "completed"`);
        return { mode: answer.mode, pending, running, waiting, dead, completed };
    }

    // Waits until `test(counts)` holds. Returns the counts and when they were seen.
    async waitCounts(destination, test, everyMs = 10, secondsMax = 120) {
        const deadline = performance.now() + secondsMax * 1000;
        for (;;) {
            const counts = await this.counts(destination), at = performance.now();
            if (test(counts))
                return { ...counts, at };
            if (at > deadline)
                throw new Error(`still ${JSON.stringify(counts)} after ${secondsMax} s`);
            await sleep(everyMs);
        }
    }

    load(mode, ...args) {
        return runJson(this.folder, path.join(this.tools, "load"), [mode, "--port", this.port, ...args], 1800);
    }

    latency(jobs) {
        return runJson(this.folder, path.join(this.tools, "latency"), ["--api", this.port, "--listen", this.latencyPort, "--jobs", jobs]);
    }

    cpuSeconds() {
        return cpuSeconds(this.server.child.pid);
    }

    rssMb() {
        return Number(readFileSync(`/proc/${this.server.child.pid}/status`, "utf8").match(/VmRSS:\s+(\d+)/)[1]) / 1024;
    }
}
