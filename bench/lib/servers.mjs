// Starts servers on private ports in a folder of the run's own, and ends each of them by its process id.
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, openSync, closeSync, readdirSync, readFileSync, readSync, writeFileSync } from "node:fs";
import net from "node:net";
import { userInfo } from "node:os";
import path from "node:path";

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const READY_MS_MAX = 30000, STOP_MS_MAX = 60000;
const TICKS_PER_SECOND = 100; // of /proc/PID/stat, fixed by Linux for user space
const running = new Set();
let ending = false; // once set nothing new is started, so that nothing is left behind

export function freePort() {
    return new Promise((resolve, reject) => {
        const server = net.createServer();
        server.on("error", reject);
        server.listen(0, "127.0.0.1", () => {
            const { port } = server.address();
            server.close(() => resolve(port));
        });
    });
}

function accepts(port) {
    return new Promise((resolve) => {
        const socket = net.connect(port, "127.0.0.1");
        const end = (answer) => { socket.destroy(); resolve(answer); };
        socket.on("connect", () => end(true));
        socket.on("error", () => end(false));
    });
}

// Waits for `ready()`, no longer than READY_MS_MAX, and not after the process ended.
export async function waitReady(server, ready) {
    const deadline = Date.now() + READY_MS_MAX;
    while (!await ready()) {
        if (server.ended)
            throw new Error(`${server.name} ended with ${server.ended}: ${server.lastLog()}`);
        if (Date.now() > deadline)
            throw new Error(`${server.name} is not ready after ${READY_MS_MAX / 1000} s: ${server.lastLog()}`);
        await sleep(2);
    }
}

// A child that cannot outlive this process, even one that is killed: setpriv asks the kernel to end it with its parent.
export function startProcess(name, folder, command, args, { signal = "SIGTERM", ...options } = {}) {
    if (ending)
        throw new Error("interrupted");
    const log = path.join(folder, `${name}.log`);
    const out = openSync(log, "a");
    const child = spawn("setpriv", ["--pdeathsig", "TERM", command, ...args], { stdio: ["ignore", out, out], ...options });
    closeSync(out);
    const server = { name, child, ended: null, lastLog: () => readFileSync(log, "utf8").slice(-600).trim() };
    server.exit = new Promise((resolve) => {
        child.on("error", (error) => { server.ended ??= error.message; running.delete(server); resolve(); });
        child.on("exit", (code, how) => { server.ended ??= how ?? `code ${code}`; running.delete(server); resolve(); });
    });
    server.stop = async () => {
        if (server.ended)
            return;
        child.kill(signal);
        const forced = setTimeout(() => child.kill("SIGKILL"), STOP_MS_MAX);
        await server.exit;
        clearTimeout(forced);
    };
    running.add(server);
    return server;
}

async function startOnPort(name, folder, port, command, args, options) {
    const server = startProcess(name, folder, command, args, options);
    server.port = port;
    await waitReady(server, () => accepts(port));
    return server;
}

// Of a process, and with `family` of its children too, those that have ended among them.
export function cpuSeconds(pid, family = false) {
    const read = (id) => {
        const stat = readFileSync(`/proc/${id}/stat`, "utf8");
        return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    };
    const ticks = (fields, names) => names.reduce((sum, name) => sum + Number(fields[name]), 0);
    let sum = ticks(read(pid), family ? [11, 12, 13, 14] : [11, 12]);
    for (const id of family ? readdirSync("/proc").filter((name) => /^\d+$/.test(name)) : []) {
        try {
            const fields = read(id);
            sum += fields[1] === String(pid) ? ticks(fields, [11, 12]) : 0;
        } catch { /* it has ended */ }
    }
    return sum / TICKS_PER_SECOND;
}

export async function stopAll() {
    ending = true;
    await Promise.all([...running].map((server) => server.stop()));
}

export async function startRedis(folder) {
    const port = await freePort();
    return startOnPort("redis", folder, port, "redis-server", ["--bind", "127.0.0.1", "--port", String(port), "--dir", folder,
        "--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--maxmemory-policy", "noeviction"]);
}

export async function startBeanstalkd(folder, fsyncMs) {
    const port = await freePort();
    return startOnPort("beanstalkd", folder, port, "beanstalkd",
        ["-l", "127.0.0.1", "-p", String(port), "-b", folder, "-f", String(fsyncMs)]);
}

function postgresBinaries() {
    const base = "/usr/lib/postgresql";
    const versions = existsSync(base) ? readdirSync(base).filter((v) => existsSync(`${base}/${v}/bin/initdb`)) : [];
    const newest = versions.sort((a, b) => Number(b) - Number(a))[0];
    return newest ? `${base}/${newest}/bin/` : "";
}

// PostgreSQL refuses to run as root: then it runs as the user that its package made.
function postgresUser() {
    if (process.getuid() !== 0)
        return {};
    const id = (flag) => Number(spawnSync("id", [flag, "postgres"], { encoding: "utf8" }).stdout);
    return { uid: id("-u"), gid: id("-g") };
}

// The cluster is made once in a run; `folder` is where.
export async function startPostgres(folder) {
    const data = path.join(folder, "cluster"), user = postgresUser(), bin = postgresBinaries();
    if (!existsSync(data)) {
        mkdirSync(data, { recursive: true, mode: 0o700 });
        if (user.uid !== undefined)
            chownSync(data, user.uid, user.gid);
        const made = spawnSync(`${bin}initdb`, ["-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale", "C"],
            { encoding: "utf8", cwd: "/", ...user });
        if (made.status !== 0)
            throw new Error(`initdb: ${made.error?.message ?? made.stderr}`);
    }
    const port = await freePort();
    // SIGINT is PostgreSQL's fast shutdown; SIGTERM would wait for clients.
    const server = await startOnPort("postgres", folder, port, `${bin}postgres`,
        ["-D", data, "-p", String(port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="],
        { signal: "SIGINT", cwd: "/", ...user });
    server.user = "bench";
    return server;
}

// The receiver: answers 200 to everything, and counts.
export async function startNginx(folder) {
    const port = await freePort(), file = path.join(folder, "nginx.conf");
    const root = process.getuid() === 0 ? `user ${userInfo().username};` : "";
    writeFileSync(file, `
${root}
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/nginx.error.log;
events { worker_connections 4096; }
http {
    access_log off;
    keepalive_requests 100000000;
    keepalive_timeout 600s;
    client_body_temp_path ${folder}/body;
    proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/fastcgi; uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
    server {
        listen 127.0.0.1:${port} backlog=1024;
        location = /requests { stub_status; }
        location / { return 200; }
    }
}
`);
    const server = await startOnPort("nginx", folder, port, "nginx", ["-c", file, "-p", folder, "-e", `${folder}/nginx.error.log`]);
    server.url = `http://127.0.0.1:${port}/`;
    let asked = 0;
    // How many requests came, without the ones that ask this.
    server.requests = async () => {
        asked++;
        const text = await (await fetch(`${server.url}requests`)).text();
        return Number(text.match(/requests\s+\d+ \d+ (\d+)/)[1]) - asked;
    };
    return server;
}

export function makeFolder(parent, name) {
    if (ending)
        throw new Error("interrupted");
    const folder = path.join(parent, name);
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o755);
    return folder;
}

// How it ended: its code, or in words. One that takes longer than `secondsMax` is ended.
async function endOf(child, secondsMax) {
    const timer = setTimeout(() => child.kill("SIGKILL"), secondsMax * 1000);
    const ended = await new Promise((resolve) => {
        child.on("error", (cause) => resolve(cause.message));
        child.on("close", (code, signal) => resolve(signal ?? code));
    });
    clearTimeout(timer);
    return ended;
}

// Runs a measuring program to its end and returns the JSON object that it prints last.
export async function runJson(folder, command, args, secondsMax = 180) {
    const child = spawn("setpriv", ["--pdeathsig", "TERM", command, ...args.map(String)], { stdio: ["ignore", "pipe", "pipe"] });
    let out = "", error = "";
    child.stdout.on("data", (data) => { out += data; });
    child.stderr.on("data", (data) => { error += data; });
    const ended = await endOf(child, secondsMax);
    const label = `${path.basename(command)} ${args.map((arg) => path.basename(String(arg))).slice(0, 2).join(" ")}`;
    if (ended !== 0)
        throw new Error(`${label} ended with ${ended}: ${(error || out).trim().slice(-600)}`);
    const result = JSON.parse(out.trim().split("\n").pop());
    if (result.errors)
        throw new Error(`${label}: ${result.errors} errors`);
    return result;
}

// Runs a program to its end with its input from a file and its output into another.
export async function runFiles(command, args, input, output, secondsMax = 180) {
    const from = openSync(input, "r"), to = openSync(output, "w");
    const child = spawn("setpriv", ["--pdeathsig", "TERM", command, ...args.map(String)], { stdio: [from, to, "pipe"] });
    let error = "";
    child.stderr.on("data", (data) => { error += data; });
    closeSync(from);
    closeSync(to);
    const ended = await endOf(child, secondsMax);
    if (ended !== 0)
        throw new Error(`${path.basename(command)} ${args.join(" ")} ended with ${ended}: ${error.trim().slice(-600)}`);
}

export function linesOf(file) {
    const fd = openSync(file, "r"), block = Buffer.alloc(1 << 20);
    let lines = 0;
    for (let len; (len = readSync(fd, block)) > 0;)
        for (let at = block.indexOf(10); at >= 0 && at < len; at = block.indexOf(10, at + 1))
            lines++;
    closeSync(fd);
    return lines;
}
