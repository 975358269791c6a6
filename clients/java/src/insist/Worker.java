package insist;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * Leases jobs of a {@code transport: pull} destination, runs a handler for each, {@code concurrency} at once, and keeps their leases
 * alive. A handler that returns is done. One that throws has failed: the destination's policy decides by the text, unless it is a
 * {@link Failure}.
 */
public final class Worker {
    @FunctionalInterface
    public interface Handler {
        void handle(LeasedJob job) throws Exception;
    }

    private static final Logger LOG = System.getLogger("insist");
    private static final int POLL_S = 5; // how long one question for work waits, and so how long a stop may take when there is none
    private static final int ERROR_CHARS_MAX = 4000;

    private final Insist insist;
    private final String destination;
    private final Handler handler;
    private final int concurrency;
    private final int leaseS;
    private final Semaphore free;
    private final Map<String, LeasedJob> held = new ConcurrentHashMap<>();
    private final CountDownLatch stopping = new CountDownLatch(1);
    private final CountDownLatch ended = new CountDownLatch(1);

    public Worker(Insist insist, String destination, int concurrency, int leaseS, Handler handler) {
        if (concurrency < 1 || leaseS < 3)
            throw new IllegalArgumentException("concurrency is at least 1, leaseS at least 3");
        this.insist = insist;
        this.destination = destination;
        this.handler = handler;
        this.concurrency = concurrency;
        this.leaseS = leaseS;
        free = new Semaphore(concurrency);
    }

    /** Takes no more; run() returns when those that are under way have ended. Any thread may call it, also a shutdown hook. */
    public void stop() {
        stopping.countDown();
    }

    /** Waits until run() has returned, for a shutdown hook. */
    public boolean awaitEnd(Duration limit) throws InterruptedException {
        return ended.await(limit.toMillis(), TimeUnit.MILLISECONDS);
    }

    public void run() throws InterruptedException {
        ExecutorService pool = Executors.newFixedThreadPool(concurrency);
        Thread heart = new Thread(this::beat, "insist-leases");
        heart.setDaemon(true);
        heart.start();
        try {
            while (stopping.getCount() > 0)
                take(pool);
        } finally {
            free.acquireUninterruptibly(concurrency); // those that are under way end
            pool.shutdown();
            heart.interrupt();
            ended.countDown();
        }
    }

    private void take(ExecutorService pool) throws InterruptedException {
        if (!free.tryAcquire(500, TimeUnit.MILLISECONDS))
            return;
        int places = 1 + free.drainPermits();
        List<LeasedJob> jobs = List.of();
        try {
            jobs = lease(places);
            for (LeasedJob job : jobs) {
                held.put(job.lease, job);
                pool.execute(() -> work(job));
            }
        } finally {
            free.release(places - jobs.size());
        }
    }

    private List<LeasedJob> lease(int places) throws InterruptedException {
        String wish = Json.write(Map.of("destination", destination, "max", places, "wait_s", POLL_S, "lease_s", leaseS));
        try {
            Map<String, Object> answer = insist.call("POST", "/v1/leases", wish, "application/json", Duration.ofSeconds(POLL_S + 30), Duration.ZERO);
            List<LeasedJob> jobs = new ArrayList<>();
            for (Object one : (List<?>) answer.get("leases"))
                jobs.add(new LeasedJob(members(one)));
            return jobs;
        } catch (InsistException error) {
            InsistException.Problem problem = error instanceof InsistException.Problem p ? p : null;
            if (problem != null && problem.status < 500 && problem.status != 429)
                throw error; // no such destination, no such right: waiting does not help
            LOG.log(Level.WARNING, "no work for now: " + error.getMessage());
            stopping.await(Math.max(1000, problem == null ? 0 : problem.retryAfterMs), TimeUnit.MILLISECONDS);
            return List.of();
        }
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> members(Object leased) {
        return (Map<String, Object>) leased;
    }

    private void work(LeasedJob job) {
        try {
            Map<String, Object> body = Map.of("leases", List.of(job.lease));
            String path = "/v1/leases/ack";
            try {
                handler.handle(job);
            } catch (Exception | LinkageError | StackOverflowError error) { // whatever a handler throws is the job's failure
                body = nack(job, error);
                path = "/v1/leases/nack";
            }
            insist.call("POST", path, Json.write(body));
        } catch (InsistException | InterruptedException error) {
            job.lose();
            LOG.log(Level.ERROR, "job " + job.id + ": what came of it could not be told, it may be done again: " + error.getMessage());
        } finally {
            held.remove(job.lease);
            free.release();
        }
    }

    private static Map<String, Object> nack(LeasedJob job, Throwable error) {
        Failure known = error instanceof Failure failure ? failure : null;
        String text = known != null && known.getMessage() != null ? known.getMessage() : error.toString();
        Map<String, Object> body = new LinkedHashMap<>();
        body.put("lease", job.lease);
        body.put("error", text.substring(0, Math.min(ERROR_CHARS_MAX, text.length())));
        if (known != null) {
            body.put("class", known.kind);
            body.put("code", known.code);
            body.put("retry_after", known.retryAfterS);
        }
        return body;
    }

    /** Prolongs every lease in time for two more tries before it ends. */
    private void beat() {
        try {
            while (true) {
                Thread.sleep(leaseS * 1000L / 3);
                List<String> leases = held.values().stream().filter(job -> !job.lost()).map(job -> job.lease).toList();
                for (int first = 0; first < leases.size(); first += 1000)
                    extend(leases.subList(first, Math.min(first + 1000, leases.size())));
            }
        } catch (InterruptedException end) {
            Thread.currentThread().interrupt();
        }
    }

    private void extend(List<String> leases) throws InterruptedException {
        String body = Json.write(Map.of("leases", leases, "lease_s", leaseS));
        try {
            Map<String, Object> answer = insist.call("POST", "/v1/leases/extend", body, "application/json", Duration.ofSeconds(10),
                Duration.ofMillis(leaseS * 1000L / 3));
            for (Object one : (List<?>) answer.get("results"))
                if (!"extended".equals(((Map<?, ?>) one).get("status")))
                    lose((String) ((Map<?, ?>) one).get("lease"));
        } catch (InsistException error) {
            if (error instanceof InsistException.Problem problem && problem.type.equals("lease_lost"))
                leases.forEach(this::lose);
            else
                LOG.log(Level.WARNING, "leases could not be prolonged: " + error.getMessage());
        }
    }

    private void lose(String lease) {
        LeasedJob job = held.get(lease);
        if (job != null)
            job.lose();
    }
}
