package insist;

import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Speaks to one daemon; any number of threads may share it. What fails for now (no connection, 429, 502, 503, 504) is tried again
 * with growing waits and jitter, never before {@code Retry-After}. Each job gets an id before it is first sent.
 */
public final class Insist {
    /** A job that was taken; {@code created} is false when it had been there before, with the same body. */
    public record Accepted(String id, String tenant, String destination, boolean created, String warning) {
    }

    /** A job of a batch that was refused; {@code index} is its place in what was given. */
    public record Rejected(long index, String type, String detail) {
    }

    public record BatchResult(long accepted, long duplicates, List<Rejected> rejected) {
    }

    private static final Set<Integer> AGAIN = Set.of(429, 502, 503, 504); // the daemon, or a proxy before it, says: not now
    private static final int BATCH_JOBS_MAX = 1000;
    private static final int BATCH_CHARS_MAX = 4 * 1024 * 1024;
    private static final long BACKOFF_FIRST_MS = 200;
    private static final long BACKOFF_MAX_MS = 10_000;

    private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(Duration.ofSeconds(10)).build();
    private final String server;
    private final String token;
    private final Duration timeout;
    private final Duration patience;

    /** INSIST_SERVER, else http://127.0.0.1:7878; INSIST_TOKEN. */
    public Insist() {
        this(Objects.requireNonNullElse(System.getenv("INSIST_SERVER"), "http://127.0.0.1:7878"), System.getenv("INSIST_TOKEN"));
    }

    public Insist(String server, String token) {
        this(server, token, Duration.ofSeconds(30), Duration.ofSeconds(60));
    }

    /** {@code timeout} is of one request, {@code patience} for how long what fails for now is tried again. */
    public Insist(String server, String token, Duration timeout, Duration patience) {
        if (!server.matches("https?://[^/]+.*"))
            throw new IllegalArgumentException("server must be http://HOST:PORT or https://HOST, not " + server);
        this.server = server.replaceAll("/+$", "");
        this.token = token;
        this.timeout = timeout;
        this.patience = patience;
    }

    /** Gives a job. When it returns, the job is on disk; the same id again changes nothing. */
    public Accepted enqueue(NewJob job) throws InterruptedException {
        Map<String, Object> answer = call("POST", "/v1/jobs", job.text());
        return new Accepted((String) answer.get("id"), (String) answer.get("tenant"), (String) answer.get("destination"),
            (Boolean) answer.get("created"), (String) answer.get("warning"));
    }

    /** Gives many. A bad one rejects only itself; what is lazy is never held whole in memory. */
    public BatchResult enqueueBatch(Iterable<NewJob> jobs) throws InterruptedException {
        long[] counts = new long[3]; // accepted, duplicates, given before this chunk
        List<Rejected> rejected = new ArrayList<>();
        List<String> lines = new ArrayList<>();
        int size = 0;
        for (NewJob job : jobs) {
            String line = job.text();
            if (!lines.isEmpty() && (lines.size() == BATCH_JOBS_MAX || size + line.length() > BATCH_CHARS_MAX)) {
                give(lines, counts, rejected);
                size = 0;
            }
            lines.add(line);
            size += line.length();
        }
        if (!lines.isEmpty())
            give(lines, counts, rejected);
        return new BatchResult(counts[0], counts[1], rejected);
    }

    private void give(List<String> lines, long[] counts, List<Rejected> rejected) throws InterruptedException {
        Map<String, Object> answer = call("POST", "/v1/jobs/batch", String.join("\n", lines), "application/x-ndjson", timeout, patience);
        counts[0] += (Long) answer.get("accepted");
        counts[1] += (Long) answer.get("duplicates");
        for (Object one : (List<?>) answer.get("rejected")) {
            Map<?, ?> row = (Map<?, ?>) one;
            rejected.add(new Rejected(counts[2] + (Long) row.get("index"), (String) row.get("type"), (String) row.get("detail")));
        }
        counts[2] += lines.size();
        lines.clear();
    }

    public Map<String, Object> job(String id, String tenant) throws InterruptedException {
        return call("GET", jobPath(id, tenant, ""), null);
    }

    public Map<String, Object> why(String id, String tenant) throws InterruptedException {
        return call("GET", jobPath(id, tenant, "/why"), null);
    }

    public Map<String, Object> retry(String id, String tenant) throws InterruptedException {
        return call("POST", jobPath(id, tenant, "/retry"), "{}");
    }

    public Map<String, Object> cancel(String id, String tenant) throws InterruptedException {
        return call("POST", jobPath(id, tenant, "/cancel"), "{}");
    }

    /** What a policy decides, for who sends by himself: the members of POST /v1/decide. */
    public Map<String, Object> decide(Map<String, ?> question) throws InterruptedException {
        return call("POST", "/v1/decide", Json.write(question));
    }

    /** Any call of the API, for what has no method here. */
    public Map<String, Object> call(String method, String path, String body) throws InterruptedException {
        return call(method, path, body, "application/json", timeout, patience);
    }

    Map<String, Object> call(String method, String path, String body, String type, Duration limit, Duration patience) throws InterruptedException {
        HttpRequest request = request(method, path, body, type, limit);
        long until = System.nanoTime() + patience.toNanos();
        for (long wait = BACKOFF_FIRST_MS;; wait = Math.min(wait * 2, BACKOFF_MAX_MS)) {
            InsistException failure;
            long pause = ThreadLocalRandom.current().nextLong(wait + 1);
            try {
                return once(request);
            } catch (InsistException.Problem problem) {
                if (!AGAIN.contains(problem.status))
                    throw problem;
                pause = Math.max(pause, problem.retryAfterMs);
                failure = problem;
            } catch (IOException error) {
                failure = new InsistException.Unreachable(server + ": " + error, error);
            }
            if (System.nanoTime() + pause * 1_000_000 - until >= 0)
                throw failure;
            Thread.sleep(pause);
        }
    }

    private HttpRequest request(String method, String path, String body, String type, Duration limit) {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(server + path)).timeout(limit).header("Accept", "application/json");
        if (token != null && !token.isEmpty())
            request.header("Authorization", "Bearer " + token);
        if (body == null)
            return request.method(method, HttpRequest.BodyPublishers.noBody()).build();
        return request.header("Content-Type", type).method(method, HttpRequest.BodyPublishers.ofString(body)).build();
    }

    private Map<String, Object> once(HttpRequest request) throws IOException, InterruptedException {
        HttpResponse<String> response = http.send(request, HttpResponse.BodyHandlers.ofString(StandardCharsets.UTF_8));
        Map<String, Object> said;
        try {
            said = object(Json.read(response.body()));
        } catch (IllegalArgumentException notJson) { // a proxy's page
            said = Map.of("detail", response.body().substring(0, Math.min(200, response.body().length())));
            if (response.statusCode() / 100 == 2)
                throw new IOException("the answer is not JSON: " + notJson.getMessage(), notJson);
        }
        if (response.statusCode() / 100 == 2)
            return said;
        Object kind = said.getOrDefault("type", said.getOrDefault("error", "http_" + response.statusCode()));
        String after = response.headers().firstValue("Retry-After").orElse("");
        throw new InsistException.Problem(response.statusCode(), kind.toString(), String.valueOf(said.get("detail")),
            after.matches("[0-9]{1,9}") ? Long.parseLong(after) * 1000 : 0);
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> object(Object value) {
        if (value instanceof Map<?, ?> map)
            return (Map<String, Object>) map;
        throw new IllegalArgumentException("not an object");
    }

    private static String jobPath(String id, String tenant, String tail) {
        String query = tenant == null || tenant.isEmpty() ? "" : "?tenant=" + escape(tenant);
        return "/v1/jobs/" + escape(id) + tail + query;
    }

    private static String escape(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }
}
