package insist;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** Verifies what insist sends to a destination with {@code sign:} (Standard Webhooks). */
public final class Webhook {
    private static final Duration TOLERANCE = Duration.ofMinutes(5);

    private Webhook() {
    }

    /**
     * Returns the message's id, by which one that comes twice is known. {@code body} is what came, byte for byte, before anything has read
     * it as JSON. Several secrets are for the time in which one follows another.
     */
    public static String verify(List<String> secrets, Map<String, List<String>> headers, byte[] body) {
        return verify(secrets, headers, body, Instant.now());
    }

    static String verify(List<String> secrets, Map<String, List<String>> headers, byte[] body, Instant now) {
        String id = header(headers, "webhook-id"), at = header(headers, "webhook-timestamp"), signatures = header(headers, "webhook-signature");
        if (id.isEmpty() || at.isEmpty() || signatures.isEmpty())
            throw new InsistException.InvalidSignature("webhook-id, webhook-timestamp or webhook-signature is missing");
        if (!at.matches("[0-9]{1,15}") || Math.abs(now.getEpochSecond() - Long.parseLong(at)) > TOLERANCE.toSeconds())
            throw new InsistException.InvalidSignature("webhook-timestamp " + at + " is not within " + TOLERANCE.toSeconds() + " s of now");
        for (String secret : secrets) {
            byte[] expected = sign(secret, (id + "." + at + ".").getBytes(StandardCharsets.UTF_8), body);
            for (String one : signatures.split(" "))
                if (one.startsWith("v1,") && MessageDigest.isEqual(expected, decode(one.substring(3))))
                    return id;
        }
        throw new InsistException.InvalidSignature("no signature is by a secret that was given");
    }

    private static byte[] sign(String secret, byte[] head, byte[] body) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(Base64.getDecoder().decode(secret.startsWith("whsec_") ? secret.substring(6) : secret), "HmacSHA256"));
            mac.update(head);
            return mac.doFinal(body);
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        } catch (IllegalArgumentException error) {
            throw new IllegalArgumentException("a secret is whsec_ and base64", error);
        }
    }

    private static byte[] decode(String text) {
        try {
            return Base64.getDecoder().decode(text);
        } catch (IllegalArgumentException notBase64) {
            return new byte[0];
        }
    }

    private static String header(Map<String, List<String>> headers, String name) {
        for (Map.Entry<String, List<String>> entry : headers.entrySet())
            if (name.equalsIgnoreCase(entry.getKey()) && !entry.getValue().isEmpty())
                return entry.getValue().get(0);
        return "";
    }
}
