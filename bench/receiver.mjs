// A receiver with a weakness: it takes `latency` ms, fails a share of requests whatever the load, refuses what is too much at
// once, or gets slower. GET tells what it has seen. node receiver.mjs PORT '{"latency":20,"fails":0.05}'
import http from "node:http";

const [port, text] = process.argv.slice(2);
const { latency = 20, fails = 0, refuses_beyond = Infinity, slows_beyond = Infinity } = JSON.parse(text ?? "{}");
const statuses = [500, 503, 429];
const seen = { good: 0, failed: 0, refused: 0, latency_ms: 0 };
let atOnce = 0, state = 1;

// The same row of numbers in every run.
function random() {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
}

function answer(response, status, takes) {
    setTimeout(() => {
        atOnce--;
        response.writeHead(status, { "content-length": 0 });
        response.end();
    }, takes);
}

http.createServer((request, response) => {
    if (request.method === "GET") {
        response.end(JSON.stringify(seen));
        return;
    }
    request.resume();
    request.on("end", () => {
        const count = ++atOnce, takes = latency * Math.max(1, count / slows_beyond);
        if (count > refuses_beyond) {
            seen.refused++;
            answer(response, 503, 5);
        } else if (random() < fails) {
            seen.failed++;
            answer(response, statuses[Math.floor(random() * statuses.length)], takes);
        } else {
            seen.good++;
            seen.latency_ms += takes;
            answer(response, 200, takes);
        }
    });
}).listen(Number(port), "127.0.0.1");
