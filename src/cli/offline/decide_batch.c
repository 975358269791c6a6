#include "cli/offline/decide_batch.h"

#include "base/log.h"
#include "cli/cli.h"
#include "cli/talk/lines.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

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
    int code = cli_print(&batch->out, EXIT_DONE);
    buffer_clear(&batch->out);
    return code;
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
    /* What was decided is told, also when reading failed. */
    int flushed = flush(batch);
    return code != EXIT_DONE ? code : flushed;
}

int decide_batch(const struct policy *policy, struct policy_set *policies, instant now)
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
