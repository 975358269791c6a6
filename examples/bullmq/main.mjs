// The bridge as a process: QUEUE, DESTINATION, REDIS_URL, INSIST_SERVER, INSIST_TOKEN and CONCURRENCY in its environment.
import { Bridge } from "./bridge.mjs";
import IORedis from "ioredis";

const { QUEUE = "email-send", DESTINATION = "mail", REDIS_URL = "redis://127.0.0.1:6379", INSIST_SERVER = "http://127.0.0.1:7878",
        INSIST_TOKEN, CONCURRENCY = "50", STALLED_INTERVAL_MS = "30000" } = process.env;
const connection = new IORedis(REDIS_URL, { maxRetriesPerRequest: null });
const bridge = new Bridge(QUEUE, { destination: DESTINATION, server: INSIST_SERVER, token: INSIST_TOKEN, connection,
                                   concurrency: Number(CONCURRENCY), stalledInterval: Number(STALLED_INTERVAL_MS),
                                   lockDuration: Number(STALLED_INTERVAL_MS) });

for (const signal of ["SIGTERM", "SIGINT"])
    process.once(signal, async () => {
        await bridge.close();
        connection.disconnect();
    });
await bridge.worker.waitUntilReady();
console.log(`jobs of ${QUEUE} go to ${DESTINATION} at ${INSIST_SERVER}`);
