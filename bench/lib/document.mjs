// docs/benchmarks.md: written only from a run.
import { markdown } from "./report.mjs";

export function document(about, summaries, options) {
    const command = ["bench/run", ...(options.peers ? ["--peers"] : []), ...(options.quick ? ["--quick"] : []),
        ...(options.big ? ["--big"] : []), ...(options.repeat === 3 ? [] : [`--repeat=${options.repeat}`]), ...options.names,
        "--write"].join(" ");
    const turns = options.repeat === 1 ? "Every figure is from one run" : `Every figure is the median of ${options.repeat} runs`;
    return `# Benchmarks

Written by \`${command}\` on ${about.date}. Run it on your own machine: the ratios carry over better than the figures.
${options.peers ? "\nThis run measured the others only; the rows of insist are empty.\n" : ""}
| | |
|---|---|
| processor | ${about.processor} |
| memory | ${about.memory} |
| system | ${about.system} |
| disk | ${about.disk}; 4 KB write and fdatasync: ${about.syncs.map((ms) => `${ms.toFixed(2)} ms`).join(" at the start, ")} at the end |
| load before | ${about.load.toFixed(2)} |
| versions | ${about.versions} |

## How it is measured

${turns}. The contenders take turns within a measurement, so a slow minute of
the machine hits all of them. Each run has a fresh store and fresh servers on loopback; nothing else that is measured runs
meanwhile. Load, server and receiver share the machine's cores. A ratio is given twice: of the medians, which the targets are
held to, and of the best runs, because other work on the machine can only make a run slower.

- **insist** stores in SQLite with \`durability: always\`: a job is on the disk before it is acknowledged. Its load comes
  from \`bench/load.c\` over HTTP/1.1 with keep-alive connections. It keeps completed jobs and their events.
- **BullMQ** runs on Redis with the append-only file synced every second: up to a second of acknowledged jobs can be lost
  in a power cut. Its load comes from its own client in Node.js. It removes completed jobs, so it keeps less than insist.
- **beanstalkd** syncs each put with \`-f 0\`, and every 50 ms with \`-f 50\`. The load comes from \`bench/load.c\`.
- **pg-boss** runs on PostgreSQL with its defaults, which sync each commit. Its load comes from its own client in Node.js. It
  is the newest version for the Node.js of Debian 12. **graphile-worker** likewise; with a local queue it fetches 500 at once and completes
  in batches, and keeps nothing of what is done. On PostgreSQL insist runs against the same server, and keeps jobs and events.
- **The decision** is \`insist_decide\` of the library (\`bench/decide.c\`) with five errors in turn, in processor time, and the
  program with a file of questions in and a file of answers out. It runs on one thread.
- **The turns** (\`bench/turns.c\`) are what the engine asks for each job that it sends: may this destination be sent to, and
  which tenant is next. A lane is one tenant of one destination. Either all lanes always have work, or each has one job and goes,
  or each has to wait after a job for a rate of its own. The time is processor time.
- **The receiver** of deliveries is nginx with one worker and \`return 200\`. **The bare loop** (\`bench/curl_loop.c\`) posts with
  libcurl on libevent and has no queue: the ceiling for a sender built on them.

Durability differs, and it matters when reading a ratio: insist with \`always\` promises more than BullMQ here.

## Results

${summaries.map(markdown).join("\n")}
## Where the time goes

Not from this run, but from a profile on two cores. A job passes three threads: the API's takes it in, the writer's stores
it, the sender's delivers it. They share the two cores with the load and the receiver.

- **A delivery** costs the sender's thread 1.9 to 2.1 times what answering it costs nginx. Nine tenths of that are spent in
  libcurl, the kernel and malloc: libcurl writes headers a character at a time, about 120 instructions for each of some 300.
  It costs the writer's thread about as much as it costs nginx.
- **An enqueue with one job a call** costs the API's thread about twice what it costs the writer's.

## Run it

\`\`\`
make bench                     # everything but the big backlog
bench/run --big --write        # with it, and write this page
bench/run enqueue pull         # some of it: enqueue bulk deliver pull postgres concurrency latency idle big decide turns instructions
bench/run --quick              # a tenth of the jobs: does it work, not how fast
bench/run --peers              # only the others
bench/run --repeat=5           # more turns
bench/run --before=COMMIT      # with another version of insist in turns
\`\`\`

It installs what is missing from Debian's packages and npm. \`BENCH_TMP\` names the folder for the stores: it should be on the
disk that matters to you, not in memory. \`INSIST\` names another program than \`build/insist\`, and \`INSIST_BUILD\` the folder
with another library than that in \`build\`.
`;
}
