#include "base/log.h"
#include "cli/cli.h"
#include "cli/offline/configuration.h"
#include "cli/offline/offline.h"
#include "cli/options.h"
#include "cli/talk/input.h"
#include "cli/talk/lines.h"
#include "lib/decision_json.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* ---- many questions, one a line ---- */

enum { FLUSH_BYTES = 64 << 10 };

struct batch {
    struct decider decider;
    instant now; /* INSTANT_NONE: ask the clock */
    struct lines lines;
    struct buffer out;
    bool invalid; /* some line was */
};

static void answer_too_long(struct buffer *out)
{
    struct error err;
    error_set(&err, STATUS_LIMIT, "the line is longer than the limit of %d bytes and was skipped; shorten submissionError",
              DECISION_QUESTION_BYTES_MAX);
    decision_json_problem(QUESTION_INVALID_JSON, slice_from(err.text), out);
}

static void answer_line(struct batch *batch, enum line_kind kind, struct slice line)
{
    if (kind == LINE_TOO_LONG) {
        answer_too_long(&batch->out);
        batch->invalid = true;
    } else {
        batch->decider.now = batch->now != INSTANT_NONE ? batch->now : clock_now();
        if (decision_json_answer(&batch->decider, line, &batch->out).problem != QUESTION_OK)
            batch->invalid = true;
    }
    buffer_append_byte(&batch->out, '\n');
}

static int flush(struct batch *batch)
{
    return cli_print(&batch->out, EXIT_DONE);
}

/* Answers all whole lines that were read. */
static int answer_lines(struct batch *batch)
{
    struct slice line;
    enum line_kind kind;
    while ((kind = lines_next(&batch->lines, &line)) != LINE_NONE) {
        answer_line(batch, kind, line);
        if (batch->out.len < FLUSH_BYTES && buffer_status(&batch->out) == STATUS_OK)
            continue;
        int code = flush(batch);
        if (code != EXIT_DONE)
            return code;
    }
    return EXIT_DONE;
}

static int answer_all(struct batch *batch)
{
    int code = EXIT_DONE;
    while (code == EXIT_DONE && !batch->lines.ended) {
        if (batch->out.len > 0 && !lines_ready(&batch->lines)) {
            code = flush(batch);
            if (code != EXIT_DONE)
                break;
        }
        if (!lines_fill(&batch->lines))
            code = cli_fail(EXIT_FAILED, "cannot read standard input: %s", strerror(errno));
        else
            code = answer_lines(batch);
    }
    /* What was decided is printed, also when reading failed. */
    int flushed = flush(batch);
    return code != EXIT_DONE ? code : flushed;
}

/*
 * Answers standard input until it ends. `now` INSTANT_NONE: the system's clock, line by line.
 * Answers are written when there are 64 KB of them and whenever the input pauses, so that a
 * program can ask and wait. EXIT_DONE; EXIT_USAGE when a line was invalid; EXIT_FAILED after
 * its message.
 */
static int decide_batch(const struct policy *policy, struct policy_set *policies, instant now)
{
    struct batch batch = { .decider = { .policy = policy, .policies = policies }, .now = now };
    if (lines_init(&batch.lines, STDIN_FILENO, DECISION_QUESTION_BYTES_MAX) != STATUS_OK)
        return cli_fail(EXIT_FAILED, "no memory to read lines");
    buffer_init(&batch.out, DECISION_ANSWER_BYTES_MAX + FLUSH_BYTES);
    int code = answer_all(&batch);
    buffer_release(&batch.out);
    lines_release(&batch.lines);
    return code == EXIT_DONE && batch.invalid ? EXIT_USAGE : code;
}

/* ---- one question ---- */

struct decide_options {
    const char *policy, *config, *id, *error, *code, *retry_count;
    const char *now, *last, *first, *deadline;
    enum priority priority;       /* PRIORITY_COUNT: not given */
    int64_t retry_after_ms, seed; /* negative: likewise */
    bool batch, in_doubt, doubted;
};

/* The answer for input that never became a question, on both outputs. */
static int refuse(enum question_problem problem, const char *detail, struct buffer *out)
{
    decision_json_problem(problem, slice_from(detail), out);
    buffer_append_byte(out, '\n');
    return cli_print(out, cli_fail(EXIT_USAGE, "%s: %s", question_problem_name(problem), detail));
}

/* Leaves *ret_at alone for an option that is not given. */
static int read_time(const struct policy *policy, const char *name, const char *text, instant *ret_at, struct buffer *out)
{
    struct error problem, err;
    if (!text || decision_time_parse(policy, slice_from(text), ret_at, &problem) == STATUS_OK)
        return EXIT_DONE;
    error_set(&err, STATUS_INVALID, "--%s: %.400s", name, problem.text);
    return refuse(QUESTION_INVALID_TIME, err.text, out);
}

static int read_times(const struct decide_options *options, const struct policy *policy, struct decide_request *request,
                      struct buffer *out)
{
    instant last_at; /* checked, not used */
    int code = read_time(policy, "now", options->now, &request->now, out);
    if (code == EXIT_DONE)
        code = read_time(policy, "last", options->last, &last_at, out);
    if (code == EXIT_DONE)
        code = read_time(policy, "first", options->first, &request->first_at, out);
    return code == EXIT_DONE ? read_time(policy, "deadline", options->deadline, &request->deadline, out) : code;
}

static int exit_code(const struct json_answer *answer)
{
    if (answer->problem != QUESTION_OK)
        return EXIT_USAGE;
    const char *error_code = decision_error_code(answer->decision.verdict);
    if (!error_code)
        return EXIT_DONE;
    return strcmp(error_code, "PERMANENT_ERROR") == 0 ? EXIT_PERMANENT : EXIT_EXHAUSTED;
}

static int decide_one(const struct decide_options *options, struct policy_set *policies, struct buffer *error,
                      struct buffer *out)
{
    struct error err;
    const struct policy *policy;
    struct decide_request request = {
        .id = slice_from(options->id),
        .code = slice_from(options->code),
        .text = slice_from(options->error),
        .outcome = options->in_doubt ? OUTCOME_IN_DOUBT : OUTCOME_NONE,
        .doubted = options->doubted,
        .priority = options->priority != PRIORITY_COUNT ? options->priority : PRIORITY_NORMAL,
        .retry_after_ms = options->retry_after_ms,
        .seed = options->seed > 0 ? (uint64_t)options->seed : 0,
        .now = clock_now(),
        .first_at = INSTANT_NONE,
        .deadline = INSTANT_NONE,
    };
    if (!options->policy)
        return refuse(QUESTION_UNKNOWN_POLICY, "no policy is given; name a preset or destination with --policy", out);
    if (policy_set_find(policies, slice_from(options->policy), &policy, &err) != STATUS_OK)
        return refuse(QUESTION_UNKNOWN_POLICY, err.text, out);
    if (options->retry_count && !slice_to_int64(slice_from(options->retry_count), &request.retry_count))
        return refuse(QUESTION_INVALID_RETRY_COUNT, "--retry-count must be a whole number from 0", out);
    int code = read_times(options, policy, &request, out);
    if (code == EXIT_DONE && options->error && strcmp(options->error, "-") == 0) {
        code = input_read("-", CLI_STDIN_BYTES_MAX, error);
        request.text = buffer_slice(error);
    }
    if (code != EXIT_DONE)
        return code;
    /* A code says it all, but where the claims' documents ask for the text. */
    if (!options->error && options->code && !slice_equal(classifier_namespace(policy->classifier), SLICE("tiss")))
        request.text = request.code;
    struct json_answer answer = decision_json_decide(policy, &request, out);
    if (answer.problem != QUESTION_OK)
        cli_fail(EXIT_USAGE, "%s; `insist help decide` shows how to ask", question_problem_name(answer.problem));
    buffer_append_byte(out, '\n');
    return cli_print(out, exit_code(&answer));
}

static int decide_stream(const struct decide_options *options, struct policy_set *policies, struct buffer *out)
{
    const struct policy *policy = NULL;
    instant now = INSTANT_NONE;
    int code = read_time(policy, "now", options->now, &now, out);
    if (options->id || options->error || options->code || options->retry_count || options->last || options->first ||
        options->deadline || options->priority != PRIORITY_COUNT || options->retry_after_ms >= 0 || options->seed >= 0 ||
        options->in_doubt || options->doubted)
        return cli_usage("decide", "with --batch each line has its own question; only --policy, --now and -c go with it");
    if (code == EXIT_DONE && options->policy)
        code = policies_find(policies, "decide", options->policy, &policy);
    return code == EXIT_DONE ? decide_batch(policy, policies, now) : code;
}

int command_decide(struct cli *cli)
{
    struct decide_options options = { .priority = PRIORITY_COUNT, .retry_after_ms = -1, .seed = -1 };
    const struct option_row rows[] = {
        { "policy", 'p', .value = &options.policy },
        { "config", 'c', .value = &options.config },
        { "id", '\0', .value = &options.id },
        { "error", 'e', .value = &options.error },
        { "code", '\0', .value = &options.code },
        { "retry-count", 'n', .value = &options.retry_count },
        { "now", '\0', .value = &options.now },
        { "last", '\0', .value = &options.last },
        { "first", '\0', .value = &options.first },
        { "deadline", '\0', .value = &options.deadline },
        { "priority", '\0', .priority = &options.priority },
        { "retry-after", '\0', .duration = &options.retry_after_ms },
        { "seed", '\0', .count = &options.seed, .low = 0, .high = INT64_MAX },
        { "in-doubt", '\0', .flag = &options.in_doubt },
        { "doubted", '\0', .flag = &options.doubted },
        { "batch", 'b', .flag = &options.batch },
        { 0 },
    };
    struct policy_set policies;
    if (!command_options(cli, rows, 0))
        return cli->code;
    int code = policies_open(options.config, &policies);
    if (code != EXIT_DONE)
        return code;
    struct buffer error = buffer_up_to(CLI_STDIN_BYTES_MAX * 2), out = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    code = options.batch ? decide_stream(&options, &policies, &out) : decide_one(&options, &policies, &error, &out);
    buffer_release(&out);
    buffer_release(&error);
    policy_set_release(&policies);
    return code;
}
