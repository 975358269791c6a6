#include "base/log.h"
#include "cli/commands.h"
#include "cli/offline/decide_batch.h"
#include "cli/offline/policies.h"
#include "cli/options.h"

#include <string.h>

struct decide_options {
    const char *policy, *config, *id, *error, *code, *retry_count;
    const char *now, *last, *first, *deadline, *priority, *retry_after, *seed;
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

static int read_rest(const struct decide_options *options, struct decide_request *request)
{
    struct error err;
    int64_t seed = 0;
    if (options->priority && !priority_from_name(slice_from(options->priority), &request->priority))
        return cli_usage("decide", "--priority is critical, high or normal, not \"%s\"", options->priority);
    if (options->retry_after &&
        duration_parse(slice_from(options->retry_after), &request->retry_after_ms, &err) != STATUS_OK)
        return cli_usage("decide", "--retry-after: %s", err.text);
    int code = option_count("decide", "seed", options->seed, 0, INT64_MAX, &seed);
    request->seed = (uint64_t)seed;
    return code;
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
        .priority = PRIORITY_NORMAL,
        .retry_after_ms = -1,
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
    if (code == EXIT_DONE)
        code = read_rest(options, &request);
    if (code == EXIT_DONE && options->error && strcmp(options->error, "-") == 0) {
        code = cli_read_stdin(error);
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
        options->deadline || options->priority || options->retry_after || options->seed || options->in_doubt ||
        options->doubted)
        return cli_usage("decide", "with --batch each line has its own question; only --policy, --now and -c go with it");
    if (code == EXIT_DONE && options->policy)
        code = policies_find(policies, "decide", options->policy, &policy);
    return code == EXIT_DONE ? decide_batch(policy, policies, now) : code;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct decide_options options = { 0 };
    const struct option_row rows[] = {
        { "policy", 'p', &options.policy, NULL },
        { "config", 'c', &options.config, NULL },
        { "id", '\0', &options.id, NULL },
        { "error", 'e', &options.error, NULL },
        { "code", '\0', &options.code, NULL },
        { "retry-count", 'n', &options.retry_count, NULL },
        { "now", '\0', &options.now, NULL },
        { "last", '\0', &options.last, NULL },
        { "first", '\0', &options.first, NULL },
        { "deadline", '\0', &options.deadline, NULL },
        { "priority", '\0', &options.priority, NULL },
        { "retry-after", '\0', &options.retry_after, NULL },
        { "seed", '\0', &options.seed, NULL },
        { "in-doubt", '\0', NULL, &options.in_doubt },
        { "doubted", '\0', NULL, &options.doubted },
        { "batch", 'b', NULL, &options.batch },
        { NULL, '\0', NULL, NULL },
    };
    struct arguments arguments;
    struct policy_set policies;
    int code;
    if (!command_options(cli, &command_decide, rows, argc, argv, 0, &arguments, &code))
        return code;
    code = policies_open(options.config, &policies);
    if (code != EXIT_DONE)
        return code;
    struct buffer error, out;
    buffer_init(&error, CLI_STDIN_BYTES_MAX * 2);
    buffer_init(&out, CLI_OUTPUT_BYTES_MAX);
    code = options.batch ? decide_stream(&options, &policies, &out) : decide_one(&options, &policies, &error, &out);
    buffer_release(&out);
    buffer_release(&error);
    policy_set_release(&policies);
    return code;
}

const struct command command_decide = {
    .name = "decide",
    .summary = "what to do about an error: retry when, or give up why",
    .help =
        "usage: insist decide --policy P --id ID --error TEXT [options]\n"
        "       insist decide --batch [--policy P] [--now T] [-c FILE] < questions > answers\n\n"
        "Decides whether a failed attempt is tried again and when, and prints the decision as a JSON object.\n"
        "The same question always has the same answer: the spread of waits comes from a hash of seed, id and retry.\n\n"
        "Options:\n"
        "  -p, --policy P         a preset (`insist presets`), or a destination of the file given with -c\n"
        "  -c, --config FILE      a configuration\n"
        "      --id ID            the job, as CLM-2025-001\n"
        "  -e, --error TEXT       what went wrong, any bytes; - reads it from standard input (up to 1 MB)\n"
        "      --code C           the error's code, as http:503 or smtp:421\n"
        "  -n, --retry-count N    retries scheduled so far (0)\n"
        "      --now T            the time to decide at, as 2025-01-12T10:40:00Z (the clock)\n"
        "      --last T           when the last attempt was; checked only\n"
        "      --first T          when the first attempt was, for the policy's max_elapsed\n"
        "      --deadline T       no try after it\n"
        "      --priority P       critical, high or normal (normal)\n"
        "      --retry-after D    the wait that the destination asked for, as 90s\n"
        "      --in-doubt         it was sent and no answer came\n"
        "      --doubted          an earlier attempt was in doubt\n"
        "      --seed N           spreads the waits otherwise (0)\n"
        "  -b, --batch            one question a line on standard input, as a JSON object with the members claimId\n"
        "                         or id, submissionError, retryCount, lastSubmissionTime, policy, now, code,\n"
        "                         firstSubmissionTime, deadline, priority, retryAfterMs, inDoubt, doubted, seed;\n"
        "                         one answer a line. Lines may have up to 4 MB.\n\n"
        "Exit codes: 0 it is tried again, polled or complete; 10 permanent error; 11 retries, time or deadline\n"
        "exhausted; 2 invalid input, which is answered with {\"error\":...,\"detail\":...}; 1 failed. With --batch 0\n"
        "when every line was decided, whatever the decisions, and 2 when some line was invalid.\n\n"
        "Examples:\n"
        "  insist decide --policy tiss --id CLM-2025-001 --error 'TIMEOUT - Connection timeout after 30s' --retry-count 1\n"
        "  insist decide --policy email --id m-1 --code smtp:550 --error '550 5.1.1 no such user' || echo \"exit $?\"\n"
        "  echo '{\"claimId\":\"CLM-A-1\",\"submissionError\":\"503\",\"policy\":\"tiss\"}' | insist decide --batch\n",
    .run = run,
};
