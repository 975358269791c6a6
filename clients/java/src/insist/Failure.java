package insist;

/** Thrown by a handler that knows better than the destination's policy. */
public final class Failure extends Exception {
    private static final long serialVersionUID = 1;
    final String kind;
    final String code;
    final Double retryAfterS;

    private Failure(String kind, String message, String code, Double retryAfterS) {
        super(message);
        this.kind = kind;
        this.code = code;
        this.retryAfterS = retryAfterS;
    }

    /** Try again later. {@code code} and {@code retryAfterS} may be null. */
    public static Failure transientOne(String message, String code, Double retryAfterS) {
        return new Failure("transient", message, code, retryAfterS);
    }

    /** This will never work: make it a dead letter. {@code code} may be null. */
    public static Failure permanent(String message, String code) {
        return new Failure("permanent", message, code, null);
    }
}
