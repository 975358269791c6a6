// Jobs of a BullMQ queue become jobs of insist. Each is completed in BullMQ when insist has it on its disk, never before, and has
// the same id here as there: one that is taken twice, after a crash of either side, is one job. See README.md.
import { DelayedError, UnrecoverableError, Worker } from "bullmq";

const FIRST_MS = 200, LONGEST_MS = 15000, ANSWER_MS = 30000;
const TEMPORARY = new Set([401, 403, 408, 429, 500, 502, 503, 504]); // a token can be mended, and the job is good

const spread = (ms) => ms * (0.5 + Math.random());

// What becomes of a job of BullMQ: its id, its company and its data. Give your own as `toJob` where the data have another form.
export const jobOf = (job) => ({
    id: job.id,
    tenant: job.data.companyId ?? job.data.tenant,
    payload: job.data.message ?? job.data,
    metadata: { queue: job.queueName, name: job.name },
});

export class Bridge {
    // destination, server, token?, toJob?, concurrency?, and what BullMQ's Worker takes: connection, prefix, lockDuration, ...
    constructor(queue, { destination, server, token, toJob = jobOf, ...worker }) {
        Object.assign(this, { destination, server, token, toJob });
        this.stopping = new AbortController();
        // A bridge that died has lost nothing: its jobs are taken again, however often. The default would fail them the second time.
        this.worker = new Worker(queue, (job, lock) => this.hand(job, lock), { concurrency: 50, maxStalledCount: 1e9, ...worker });
        this.worker.on("error", (error) => this.say("redis", { error: error.message }));
        this.worker.on("failed", (job, error) => this.say("rejected", { job: job?.id, error: error.message }));
    }

    say(event, fields) {
        console.error(JSON.stringify({ event: `bridge_${event}`, ...fields }));
    }

    // Until insist has it. It waits here, not in BullMQ, so that no attempt is spent; BullMQ renews the lock meanwhile.
    async hand(job, lock) {
        const body = JSON.stringify({ ...this.toJob(job), destination: this.destination });
        for (let wait = FIRST_MS; !this.stopping.signal.aborted; wait = Math.min(wait * 2, LONGEST_MS)) {
            const { status, problem, after } = await this.post(body);
            if (status === 200 || status === 201)
                return { insist: job.id };
            if (problem?.type === "tenant_queue_full") // the others of the queue need not wait for it
                return this.later(job, lock, after || spread(LONGEST_MS));
            if (status && !TEMPORARY.has(status)) // invalid, or another body under this id: it stays among BullMQ's failed
                throw new UnrecoverableError(`insist: ${status} ${problem?.type ?? ""}: ${problem?.detail ?? ""}`);
            if (wait === FIRST_MS)
                this.say("waits", { job: job.id, status, detail: problem?.detail });
            await this.sleep(after || spread(wait));
        }
        return this.later(job, lock, 0);
    }

    async later(job, lock, ms) {
        await job.moveToDelayed(Date.now() + ms, lock);
        throw new DelayedError();
    }

    async post(body) {
        try {
            const answer = await fetch(`${this.server}/v1/jobs`, {
                method: "POST", body, signal: AbortSignal.timeout(ANSWER_MS),
                headers: { "Content-Type": "application/json", ...(this.token && { Authorization: `Bearer ${this.token}` }) },
            });
            const problem = await answer.json().catch(() => undefined);
            return { status: answer.status, problem, after: 1000 * Number(answer.headers.get("Retry-After") ?? 0) };
        } catch (error) {
            return { status: 0, problem: { detail: error.cause?.message ?? error.message } };
        }
    }

    sleep(ms) {
        return new Promise((done) => {
            const timer = setTimeout(done, ms);
            this.stopping.signal.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
        });
    }

    // What is not handed over goes back to the queue.
    async close() {
        this.stopping.abort();
        await this.worker.close();
    }
}
