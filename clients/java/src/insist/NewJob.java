package insist;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;

/** A job to give: {@code NewJob.to("claims").id("CLM-2025-000123").tenant("hospital-a").payload(Map.of("guide", 77))}. */
public final class NewJob {
    private final Map<String, Object> members = new LinkedHashMap<>();

    private NewJob(String destination) {
        members.put("destination", destination);
    }

    public static NewJob to(String destination) {
        return new NewJob(destination);
    }

    public NewJob id(String id) {
        return with("id", id);
    }

    public NewJob tenant(String tenant) {
        return with("tenant", tenant);
    }

    /** critical, high or normal. */
    public NewJob priority(String priority) {
        return with("priority", priority);
    }

    /** A string is sent as it is, bytes as they are, a map or list as its JSON. */
    public NewJob payload(Object payload) {
        members.remove("payload");
        members.remove("payload_base64");
        if (payload instanceof byte[] bytes)
            return with("payload_base64", Base64.getEncoder().encodeToString(bytes));
        return with("payload", payload);
    }

    public NewJob contentType(String type) {
        return with("content_type", type);
    }

    public NewJob headers(Map<String, String> headers) {
        return with("headers", headers);
    }

    public NewJob runAt(Instant at) {
        return with("run_at", at.truncatedTo(ChronoUnit.MILLIS));
    }

    public NewJob deadline(Instant at) {
        return with("deadline", at.truncatedTo(ChronoUnit.MILLIS));
    }

    public NewJob correlationId(String id) {
        return with("correlation_id", id);
    }

    public NewJob metadata(Map<String, ?> metadata) {
        return with("metadata", metadata);
    }

    /** Jobs of one key go one at a time, in order. */
    public NewJob key(String key) {
        return with("key", key);
    }

    /** A destination that is told of its end. */
    public NewJob callback(String destination) {
        return with("callback", Map.of("destination", destination));
    }

    /** A url that is told of its end; the daemon must allow it. */
    public NewJob callbackUrl(String url) {
        return with("callback", Map.of("url", url));
    }

    private NewJob with(String name, Object value) {
        if (value != null)
            members.put(name, value);
        return this;
    }

    /** Made once: a job without an id has one from then on, so that no repetition makes a second job. */
    String text() {
        members.computeIfAbsent("id", name -> UUID.randomUUID().toString());
        return Json.write(members);
    }
}
