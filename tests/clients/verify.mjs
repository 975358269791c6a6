// A receiver as somebody else would write it: Node's own server, and the reference library of Standard Webhooks.
// verify.mjs SECRET PORT_FILE LOG: one line of JSON a request: {key, id, verified, body}.
import { appendFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const [secret, portFile, log] = process.argv.slice(2);
const webhook = new Webhook(secret);

const server = createServer(async (request, response) => {
    const pieces = [];
    for await (const piece of request)
        pieces.push(piece);
    const body = Buffer.concat(pieces).toString("utf8");
    let verified = true;
    try {
        webhook.verify(body, request.headers);
    } catch (error) {
        verified = String(error.message);
    }
    appendFileSync(log, JSON.stringify({ key: request.headers["idempotency-key"], id: request.headers["webhook-id"], verified, body }) + "\n");
    response.writeHead(verified === true ? 204 : 400).end();
});
server.listen(0, "127.0.0.1", () => writeFileSync(portFile, String(server.address().port)));
