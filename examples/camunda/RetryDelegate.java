import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A delegate that asks insist what comes next, with nothing but the JDK. In Camunda 7 call {@link #execute} from a JavaDelegate:
 *
 * <pre>
 * public void execute(DelegateExecution execution) throws Exception {
 *     try {
 *         delegate.execute(execution::getVariable, execution::setVariable);
 *     } catch (RetryDelegate.ProcessError error) {
 *         throw new BpmnError(error.code, error.getMessage());
 *     }
 * }
 * </pre>
 *
 * Alone: {@code java RetryDelegate.java SERVER POLICY CLAIM ERROR COUNT} prints what would be set.
 */
public final class RetryDelegate {
    /** What the process handles: MAX_RETRIES_EXCEEDED or PERMANENT_ERROR. */
    public static final class ProcessError extends Exception {
        private static final long serialVersionUID = 1;
        public final String code;

        ProcessError(String code, String message) {
            super(message);
            this.code = code;
        }
    }

    private static final Pattern MEMBER = Pattern.compile("\"(\\w+)\":(?:\"((?:[^\"\\\\]|\\\\.)*)\"|(true|false)|(-?\\d+))");

    private final HttpClient http = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(5)).build();
    private final URI decide;
    private final String policy;
    private final String token;

    public RetryDelegate(String server, String policy, String token) {
        this.decide = URI.create(server + "/v1/decide");
        this.policy = policy;
        this.token = token;
    }

    public void execute(Function<String, Object> get, BiConsumer<String, Object> set) throws IOException, InterruptedException, ProcessError {
        Object count = get.apply("retryCount");
        String question = "{\"policy\":" + quote(policy) + ",\"claimId\":" + quote(get.apply("claimId")) + ",\"submissionError\":"
            + quote(get.apply("submissionError")) + ",\"retryCount\":" + (count == null ? 0 : Long.parseLong(count.toString())) + "}";
        HttpRequest.Builder request = HttpRequest.newBuilder(decide).timeout(Duration.ofSeconds(10)).header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(question));
        if (token != null)
            request.header("Authorization", "Bearer " + token);
        HttpResponse<String> answer = http.send(request.build(), HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() != 200)
            throw new IOException("insist: " + answer.statusCode() + " " + answer.body());
        String code = null, error = null;
        for (Matcher member = MEMBER.matcher(answer.body()); member.find();) {
            Object value = member.group(3) != null ? Boolean.valueOf(member.group(3))
                : member.group(4) != null ? (Object) Long.valueOf(member.group(4)) : unescape(member.group(2));
            set.accept(member.group(1), value);
            code = member.group(1).equals("errorCode") ? value.toString() : code;
            error = member.group(1).equals("originalError") ? value.toString() : error;
        }
        if (code != null)
            throw new ProcessError(code, error);
    }

    private static String quote(Object value) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : String.valueOf(value == null ? "" : value).toCharArray())
            out.append(c == '"' || c == '\\' ? "\\" + c : c < ' ' ? String.format("\\u%04x", (int) c) : String.valueOf(c));
        return out.append('"').toString();
    }

    private static String unescape(String text) {
        Matcher escape = Pattern.compile("\\\\(?:u([0-9a-fA-F]{4})|(.))").matcher(text);
        return escape.replaceAll(found -> Matcher.quoteReplacement(found.group(1) != null
            ? String.valueOf((char) Integer.parseInt(found.group(1), 16))
            : Map.of("n", "\n", "t", "\t", "r", "\r", "b", "\b", "f", "\f").getOrDefault(found.group(2), found.group(2))));
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> given = Map.of("claimId", arguments[2], "submissionError", arguments[3], "retryCount", arguments[4]);
        try {
            new RetryDelegate(arguments[0], arguments[1], System.getenv("INSIST_TOKEN")).execute(given::get,
                (name, value) -> System.out.println(name + " = " + value + " (" + value.getClass().getSimpleName() + ")"));
        } catch (ProcessError error) {
            System.out.println("BpmnError " + error.code + ": " + error.getMessage());
        }
    }
}
