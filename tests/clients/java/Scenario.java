import insist.Failure;
import insist.Insist;
import insist.InsistException;
import insist.Json;
import insist.NewJob;
import insist.Webhook;
import insist.Worker;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

/** What every client can, with the Java one: Scenario SERVER FLAKY REQUEST_FILE SECRET. */
public final class Scenario {
    static void check(String name, boolean fine, Object seen) {
        System.out.println((fine ? "ok" : "not ok") + " - java: " + name + (fine ? "" : " (" + seen + ")"));
    }

    static Object thrown(Callable<?> call) {
        try {
            return "no failure but " + call.call();
        } catch (Exception error) {
            return error;
        }
    }

    static NewJob one(int n) {
        return NewJob.to("java").id("one/é").tenant("acme-java").priority("high").payload(Map.of("n", n));
    }

    public static void main(String[] arguments) throws Exception {
        Insist insist = new Insist(arguments[0], null);
        give(insist, arguments[1]);
        work(insist);
        verify(arguments[2], arguments[3]);
        json();
    }

    static void give(Insist insist, String flaky) throws Exception {
        check("a job is taken", insist.enqueue(one(1)).created(), "");
        check("the same again is the same", !insist.enqueue(one(1)).created(), "");
        Object problem = thrown(() -> insist.enqueue(one(2)));
        check("another body is refused", problem instanceof InsistException.Problem p && p.type.equals("id_conflict") && p.status == 409, problem);
        check("a job is shown", "high".equals(insist.job("one/é", "acme-java").get("priority")), "");
        check("why is told", insist.why("one/é", "acme-java").containsKey("reason"), "");
        check("one is cancelled", "cancelled".equals(insist.cancel("one/é", "acme-java").get("state")), "");
        Insist nobody = new Insist("http://127.0.0.1:1", null, Duration.ofSeconds(5), Duration.ofMillis(500));
        Object gone = thrown(() -> nobody.enqueue(one(1)));
        check("no daemon: unreachable", gone instanceof InsistException.Unreachable, gone);
        Insist.Accepted once = new Insist(flaky + "/java", null).enqueue(NewJob.to("java").tenant("flaky-java").payload(new byte[] { 0, (byte) 255 }));
        List<?> there = (List<?>) insist.call("GET", "/v1/jobs?destination=java&tenant=flaky-java", null).get("jobs");
        check("one job, whatever fails on the way", there.size() == 1 && !once.created(), there);
        Insist.BatchResult batch = insist.enqueueBatch(IntStream.range(0, 2500).mapToObj(n -> NewJob.to(n == 7 || n == 2100 ? "nowhere" : "java")
            .id("b" + n).tenant("batch-java").payload(Map.of("n", n)).runAt(Instant.parse("2099-01-01T00:00:00Z")))::iterator);
        check("a batch rejects the bad ones only", batch.accepted() == 2498
            && batch.rejected().stream().map(Insist.Rejected::index).toList().equals(List.of(7L, 2100L)), batch);
        Map<String, Object> decision = insist.decide(Map.of("policy", "tiss", "id", "CLM-2025-1", "submissionError", "TIMEOUT - no answer",
            "retryCount", 0, "record", false));
        check("a decision", decision.get("shouldRetry").equals(true) && decision.get("errorClassification").equals("TRANSIENT"), decision);
    }

    static void work(Insist insist) throws Exception {
        Object nobody = thrown(() -> insist.enqueue(NewJob.to("java").payload(1).callback("nowhere")));
        check("who is told of the end must be there", nobody instanceof InsistException.Problem p && p.type.equals("unknown_destination"), nobody);
        Object strange = thrown(() -> insist.enqueue(NewJob.to("java").payload(1).callbackUrl("https://a.example/")));
        check("and allowed", strange instanceof InsistException.Problem p && p.type.equals("callback_not_allowed"), strange);
        for (int n = 0; n < 12; n++)
            insist.enqueue(NewJob.to("java").id("w" + n).tenant("work-java").payload(Map.of("n", n)).key(n == 4 || n == 9 ? "pair" : null));
        Map<String, Object> gaps = new ConcurrentHashMap<>();
        Map<String, Integer> runs = new ConcurrentHashMap<>();
        CountDownLatch lastBegan = new CountDownLatch(1);
        Worker.Handler handler = job -> {
            int run = runs.merge(job.id, 1, Integer::sum);
            if (job.gap)
                gaps.put(job.id, job.members.get("key"));
            if (job.id.equals("w3") && run == 1)
                throw new java.io.IOException("TIMEOUT: printer");
            if (job.id.equals("w4"))
                throw Failure.permanent("no such label", "NO_LABEL");
            if (job.id.equals("w5") && run == 1)
                throw Failure.transientOne("out of paper", null, 1.0);
            if (job.id.equals("w6"))
                Thread.sleep(9000); // longer than its lease
            if (job.id.equals("last")) {
                lastBegan.countDown();
                Thread.sleep(2000);
            }
        };
        Worker worker = new Worker(insist, "java", 5, 6, handler);
        Thread thread = new Thread(() -> {
            try {
                worker.run();
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
        });
        thread.start();
        for (int n = 0; n < 300 && !ended(insist); n++)
            Thread.sleep(200);
        String[] states = new String[12];
        for (int n = 0; n < 12; n++)
            states[n] = (String) insist.job("w" + n, "work-java").get("state");
        check("the worker ends them", IntStream.range(0, 12).allMatch(n -> n == 4 || states[n].equals("completed")), Arrays.toString(states));
        Map<String, Object> dead = insist.job("w4", "work-java");
        check("a permanent failure is a dead letter", "dead".equals(dead.get("state")) && "NO_LABEL".equals(dead.get("last_code")), dead);
        check("what failed is tried again, what lasts is not", runs.get("w3") == 2 && runs.get("w5") == 2 && runs.get("w6") == 1, runs);
        check("the next of its key comes after it, and knows", gaps.equals(Map.of("w9", "pair")), gaps);
        insist.enqueue(NewJob.to("java").id("last").tenant("work-java").payload("x"));
        lastBegan.await(30, TimeUnit.SECONDS);
        worker.stop();
        boolean stopped = worker.awaitEnd(Duration.ofSeconds(30));
        check("a stop lets the last one end", stopped && "completed".equals(insist.job("last", "work-java").get("state")), "");
        Object wrong = thrown(() -> {
            new Worker(insist, "nowhere", 1, 60, handler).run();
            return "an end";
        });
        check("a worker of nothing says so", wrong instanceof InsistException.Problem, wrong);
    }

    static boolean ended(Insist insist) throws InterruptedException {
        for (Object one : (List<?>) insist.call("GET", "/v1/tenants?destination=java", null).get("tenants")) {
            Map<?, ?> row = (Map<?, ?>) one;
            if (row.get("tenant").equals("work-java"))
                return (Long) row.get("pending") + (Long) row.get("running") + (Long) row.get("waiting") == 0;
        }
        return false;
    }

    static void verify(String file, String secret) throws Exception {
        Map<?, ?> request = (Map<?, ?>) Json.read(Files.readString(Path.of(file)));
        Map<String, List<String>> headers = new HashMap<>();
        ((Map<?, ?>) request.get("headers")).forEach((name, value) -> headers.put(name.toString(), List.of(value.toString())));
        byte[] body = Base64.getDecoder().decode(request.get("body").toString());
        check("a signature is verified", !Webhook.verify(List.of("whsec_AAAA", secret), headers, body).isEmpty(), "");
        Map<String, List<String>> old = new HashMap<>(headers);
        old.replaceAll((name, value) -> name.equalsIgnoreCase("webhook-timestamp") ? List.of("1614265330") : value);
        byte[] changed = Arrays.copyOf(body, body.length + 1);
        Map<String, Callable<?>> bad = Map.of("a changed body", () -> Webhook.verify(List.of(secret), headers, changed),
            "another secret", () -> Webhook.verify(List.of("whsec_AAAA"), headers, body),
            "an old one", () -> Webhook.verify(List.of(secret), old, body), "none", () -> Webhook.verify(List.of(secret), Map.of(), body));
        bad.forEach((name, call) -> check(name + " is not", thrown(call) instanceof InsistException.InvalidSignature, thrown(call)));
    }

    static void json() {
        String text = "{\"a\":[1,-2.5e3,true,false,null,\"\\u00e9\\n\\\"\"],\"b\":{},\"c\":[],\"d\":12345678901234567890}";
        check("JSON is read and written", Json.write(Json.read(text)).equals(text.replace("\\u00e9", "é").replace("\\n", "\\u000a").replace("-2.5e3", "-2.5E+3")), Json.write(Json.read(text)));
        for (String bad : List.of("", "{", "[1,]", "{\"a\" 1}", "01", "1 2", "\"", "\"\\x\"", "tru", "[".repeat(300)))
            check("not JSON: " + bad.substring(0, Math.min(8, bad.length())), thrown(() -> Json.read(bad)) instanceof IllegalArgumentException, thrown(() -> Json.read(bad)));
    }
}
