// An e-mail gateway's producer, as its document has it. usage: bullmq_producer.mjs PORT COMMAND
//   add FROM TO   messages of that many outbox entries, five companies in turn; some recipients are none
//   bad           what can be no message, and an id that is in use with another body
//   counts        prints what is in the queue, as JSON
//   failed        prints what failed for good, one line each
import { Queue } from "bullmq";
import IORedis from "ioredis";

const [port, command, from, to] = process.argv.slice(2);
const connection = new IORedis({ host: "127.0.0.1", port: Number(port), maxRetriesPerRequest: null });
connection.on("error", () => {}); // it is killed on the way
const queue = new Queue("email-send", { connection });
const options = (outboxId) => ({ jobId: outboxId, attempts: 5, backoff: { type: "exponential", delay: 1000 }, removeOnComplete: true, removeOnFail: false });

const recipient = (number) => number % 40 === 7 ? "MessageRejected@error.test" : number % 40 === 13 ? "ThrottlingException@error.test"
    : `user${number}@example.net`;
const message = (number) => ({ to: recipient(number), subject: `Invoice ${number}`, text: `Dear customer ${number}\n` });

async function add(number) {
    const outboxId = `outbox-${number}`;
    await queue.add("send", { outboxId, companyId: `company-${number % 5}`, message: message(number) }, options(outboxId));
}

if (command === "add")
    for (let number = Number(from); number < Number(to); number++)
        await add(number);
if (command === "bad") {
    await queue.add("send", { companyId: "company-0", message: { subject: "to nobody" } }, options("outbox-nobody"));
    await queue.add("send", { companyId: "company-0", message: { to: "other@example.net", subject: "x", text: "y" } }, options("outbox-0"));
}
if (command === "counts")
    console.log(JSON.stringify(await queue.getJobCounts()));
if (command === "failed")
    for (const job of await queue.getFailed())
        console.log(job.id, job.attemptsMade, job.failedReason);
await queue.close();
connection.disconnect();
