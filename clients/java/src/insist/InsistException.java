package insist;

/** Everything that this package throws. */
public class InsistException extends RuntimeException {
    private static final long serialVersionUID = 1;

    InsistException(String message, Throwable cause) {
        super(message, cause);
    }

    /** No answer in time. An order may have been carried out: give it again with the same id. */
    public static final class Unreachable extends InsistException {
        private static final long serialVersionUID = 1;

        Unreachable(String message, Throwable cause) {
            super(message, cause);
        }
    }

    /** The daemon refused: {@code type} is a stable word for programs, {@code detail} says what to do. */
    public static final class Problem extends InsistException {
        private static final long serialVersionUID = 1;
        public final int status;
        public final String type;
        public final String detail;
        public final long retryAfterMs;

        Problem(int status, String type, String detail, long retryAfterMs) {
            super(type + ": " + detail, null);
            this.status = status;
            this.type = type;
            this.detail = detail;
            this.retryAfterMs = retryAfterMs;
        }
    }

    /** Nobody who has the secret sent this, or long ago, or it was changed on the way. */
    public static final class InvalidSignature extends InsistException {
        private static final long serialVersionUID = 1;

        InvalidSignature(String message) {
            super(message, null);
        }
    }
}
