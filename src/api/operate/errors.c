/*
 * Errors that no rule knows: what was seen of them, and the rules that this speaks for.
 */
#include "api/call/ask.h"
#include "api/call/query.h"
#include "api/operate/operate.h"
#include "engine/errors/errors.h"

#include <math.h>

/* Four digits are more than the counts carry. */
static void write_share(struct json_writer *json, const char *name, double share)
{
    json_member_real(json, name, round(share * 10000) / 10000);
}

static void write_odds(struct json_writer *json, const struct learning *learning)
{
    struct odds odds = learning_odds(learning);
    json_member_object(json, "odds");
    write_share(json, "mean", odds.mean);
    write_share(json, "low", odds.low);
    write_share(json, "high", odds.high);
    json_object_end(json);
}

static void write_proposal(struct json_writer *json, const struct error_report *report)
{
    enum outcome outcome = report->known_as == OUTCOME_NONE ? learning_class(&report->learning) : OUTCOME_NONE;
    const struct fingerprint *fingerprint = &report->fingerprint;
    struct buffer yaml = call_buffer();
    json_name(json, "proposal");
    if (outcome != OUTCOME_NONE && learning_propose(report->destination, outcome, slice_from(fingerprint->code),
                                                    slice_from(fingerprint->sample), fingerprint->spaced, &yaml)) {
        json_object_begin(json);
        json_member_text(json, "class", outcome_name(outcome));
        json_member_string(json, "yaml", buffer_slice(&yaml));
        json_object_end(json);
    } else {
        json_put_null(json);
    }
    buffer_release(&yaml);
}

static void write_error(struct json_writer *json, const struct error_report *report)
{
    json_object_begin(json);
    json_member_text(json, "fingerprint", report->fingerprint.text);
    json_member_string(json, "destination", report->destination);
    json_member_given(json, "code", slice_from(report->fingerprint.code));
    json_member_text(json, "sample", report->fingerprint.sample);
    json_member_int(json, "seen", report->learning.seen);
    json_member_int(json, "recovered", report->learning.recovered);
    json_member_int(json, "gave_up", report->learning.gave_up);
    write_odds(json, &report->learning);
    json_member_instant(json, "first_at", report->first_at);
    json_member_instant(json, "last_at", report->last_at);
    if (report->known_as != OUTCOME_NONE) {
        json_member_text(json, "known_as", outcome_name(report->known_as));
        json_member_string(json, "rule", report->rule);
    }
    write_proposal(json, report);
    json_object_end(json);
}

struct error_question {
    struct slice destination;
    size_t limit;
    enum status status;
    struct error_report *reports;
    size_t count;
    struct saved_wait saved; /* of forgetting */
};

/* One destination's errors are its owner's; without one those of all that are here. */
static void ask_about(struct call *call, struct error_question *question, ask_run *run, void (*then)(struct call *call))
{
    question->destination = call_query(call, "destination");
    if (question->destination.len > 0)
        ask(call, question->destination, run, then);
    else
        ask_here(call, run, then);
}

static void answer_errors(struct call *call)
{
    const struct error_question *question = call->context;
    if (question->status != STATUS_OK) {
        call_no_memory(call);
        return;
    }
    struct json_writer *json = call_answer(call);
    json_member_array(json, "errors");
    for (size_t i = 0; i < question->count; i++)
        write_error(json, &question->reports[i]);
    json_array_end(json);
    call_answer_send(call, 200);
}

static bool ask_errors(struct call *call, struct engine *engine)
{
    struct error_question *question = call->context;
    question->status =
        engine_errors(engine, question->destination, question->limit, &call->memory, &question->reports, &question->count);
    return true;
}

void handle_errors_list(struct call *call)
{
    struct error_question *question = call_context(call, sizeof *question);
    if (question && call_limit(call, &question->limit))
        ask_about(call, question, ask_errors, answer_errors);
}

/* --- forgetting ----------------------------------------------------------------------------------- */

static void answer_forgotten(struct call *call)
{
    const struct error_question *question = call->context;
    if (question->count == 0) {
        call_problem(call, 404, "error_not_found",
                     "there is no unknown error %.*s%s; insist errors lists them",
                     SLICE_ARG(call->parameters[0]), question->destination.len > 0 ? " at that destination" : "");
        return;
    }
    if (question->saved.error.status != STATUS_OK) {
        call_problem(call, 503, "not_kept",
                     "it is forgotten, but could not be taken out of the store: %s; the daemon goes on trying, and after a "
                     "restart before that it is known again",
                     question->saved.error.text);
        return;
    }
    struct json_writer *json = call_answer(call);
    json_member_string(json, "fingerprint", call->parameters[0]);
    json_member_int(json, "forgotten", (int64_t)question->count);
    call_answer_send(call, 200);
}

static void answer_noted(struct call *call)
{
    struct error_question *question = call->context;
    if (call->batch->status != STATUS_OK)
        question->saved.error = call->batch->error;
    answer_forgotten(call);
}

/* The trail says whose order it was. */
static void tell_forgotten(struct call *call)
{
    const struct error_question *question = call->context;
    if (question->count == 0 || question->saved.error.status != STATUS_OK) {
        answer_forgotten(call);
        return;
    }
    struct buffer note = buffer_up_to(EVENT_DATA_BYTES_MAX);
    struct json_writer json = json_begin(&note);
    json_member_text(&json, "note", "error_forgotten");
    json_member_string(&json, "fingerprint", call->parameters[0]);
    json_member_given(&json, "destination", question->destination);
    json_member_string(&json, "by", call->who);
    json_object_end(&json);
    struct slice data = buffer_into(&note, &call->memory);
    call->batch = data.data ? batch_new(1, SIZE_MAX / 4) : NULL;
    if (!call->batch) {
        call_no_memory(call);
        return;
    }
    call->batch->ops[0] = (struct store_op){ .kind = OP_NOTE, .data = data };
    call->batch->count = 1;
    call_submit(call, answer_noted);
}

static bool forget_error(struct call *call, struct engine *engine)
{
    struct error_question *question = call->context;
    question->count = engine_forget_error(engine, question->destination, call->parameters[0]);
    if (question->count == 0)
        return true;
    question->saved = ask_saved(call);
    engine_await_forgotten(engine, &question->saved);
    return false;
}

void handle_error_forget(struct call *call)
{
    struct error_question *question = call_context(call, sizeof *question);
    if (question)
        ask_about(call, question, forget_error, tell_forgotten);
}
