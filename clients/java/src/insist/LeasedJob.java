package insist;

import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;

/** What a worker's handler is given. */
public final class LeasedJob {
    public final String id;
    public final String tenant;
    public final String destination;
    public final long attempt;
    public final String lease;
    public final byte[] payload;
    /** The one of its key before it is a dead letter. */
    public final boolean gap;
    /** Every member as the API has it: headers, metadata, content_type, correlation_id, key. */
    public final Map<String, Object> members;
    private volatile boolean lost;

    LeasedJob(Map<String, Object> members) {
        this.members = members;
        id = (String) members.get("id");
        tenant = (String) members.getOrDefault("tenant", "");
        destination = (String) members.get("destination");
        attempt = (Long) members.get("attempt");
        lease = (String) members.get("lease");
        gap = Boolean.TRUE.equals(members.get("gap"));
        String bytes = (String) members.get("payload_base64");
        payload = bytes != null ? Base64.getDecoder().decode(bytes)
            : ((String) members.getOrDefault("payload", "")).getBytes(StandardCharsets.UTF_8);
    }

    public String text() {
        return new String(payload, StandardCharsets.UTF_8);
    }

    public Object json() {
        return Json.read(text());
    }

    /** Somebody else may have the job now: a long handler asks and gives up. */
    public boolean lost() {
        return lost;
    }

    void lose() {
        lost = true;
    }
}
