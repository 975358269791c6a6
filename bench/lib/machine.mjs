// What the figures were measured on and with.
import { spawnSync } from "node:child_process";
import { closeSync, fdatasyncSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { cpus, loadavg, release, totalmem } from "node:os";
import path from "node:path";
import { median } from "./report.mjs";

const SYNCS = 200;

function lines(command, args) {
    const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8" });
    return status === 0 ? (stdout || stderr).trim().split("\n") : ["unknown"];
}

const firstLine = (command, args) => lines(command, args)[0];
const lastLine = (command, args) => lines(command, args).pop();

// How long the disk takes to make 4 KB durable, the median: every durable figure leans on it, and it tells a calm machine.
export function syncMs(folder) {
    const file = path.join(folder, "sync.probe"), fd = openSync(file, "w"), block = Buffer.alloc(4096, "x");
    const times = Array.from({ length: SYNCS }, () => {
        const begin = process.hrtime.bigint();
        writeSync(fd, block);
        fdatasyncSync(fd);
        return Number(process.hrtime.bigint() - begin) / 1e6;
    });
    closeSync(fd);
    rmSync(file);
    return median(times);
}

export function machine(context, folder) {
    const module = (name) => {
        const file = path.join(context.bench, "node_modules", name, "package.json");
        return `${name} ${JSON.parse(readFileSync(file, "utf8")).version}`;
    };
    const system = readFileSync("/etc/os-release", "utf8").match(/PRETTY_NAME="(.*)"/)?.[1] ?? "Linux";
    const match = (text, pattern) => text.match(pattern)?.[1] ?? text;
    return {
        date: new Date().toISOString().slice(0, 10),
        processor: `${cpus()[0].model}, ${cpus().length} cores`,
        memory: `${(totalmem() / 2 ** 30).toFixed(0)} GB`,
        system: `${system}, Linux ${release()}`,
        disk: lastLine("df", ["--output=fstype", folder]),
        syncs: [syncMs(folder)],
        load: loadavg()[0],
        versions: [
            ...(context.program ? [firstLine(context.program, ["version"])] : []),
            `libcurl ${firstLine("pkg-config", ["--modversion", "libcurl"])}`,
            `Redis ${match(firstLine("redis-server", ["--version"]), /v=(\S+)/)}`,
            `beanstalkd ${match(firstLine("beanstalkd", ["-v"]), /(\d\S*)/)}`,
            `PostgreSQL ${match(firstLine("psql", ["--version"]), /(\d+\.\d+)/)}`,
            `nginx ${match(spawnSync("nginx", ["-v"], { encoding: "utf8" }).stderr.trim(), /nginx\/(\S+)/)}`,
            `Node.js ${process.versions.node}`, module("bullmq"), module("ioredis"), module("undici"), module("pg-boss"), module("graphile-worker"),
        ].join(", "),
    };
}
