#include "sim/report.h"

#include "base/json.h"

#include <math.h>
#include <string.h>

static void put_value(struct json_writer *json, const struct figure *figure, double value)
{
    if (isnan(value))
        json_put_null(json);
    else if (figure->unit == UNIT_COUNT || figure->unit == UNIT_TIME)
        json_put_int(json, llround(value));
    else
        json_put_real(json, round(value * 1e6) / 1e6);
}

/* A value that several rules look at is written once. */
static bool first_of_name(const struct figure *figure)
{
    return figure == figures || strcmp(figure[-1].name, figure->name) != 0;
}

static void put_figures(struct json_writer *json, const struct report *report)
{
    json_member_object(json, "figures");
    for (const struct figure *figure = figures; figure->name; figure++) {
        if (!first_of_name(figure))
            continue;
        json_name(json, figure->name);
        put_value(json, figure, figure_value(figure, report));
    }
    json_object_end(json);
}

static void put_targets(struct json_writer *json, const struct run *run)
{
    const struct report *report = &run->report;
    json_member_array(json, "targets");
    for (const struct figure *figure = figures; figure->name; figure++) {
        char target[FIGURE_TEXT_BYTES];
        if (figure->target == TARGET_NONE || !figure_is_asked_for(figure, run))
            continue;
        enum figure_verdict verdict = figure_judge(figure, report);
        figure_target_text(figure, target);
        json_object_begin(json);
        json_member_text(json, "rule", figure->rule);
        json_member_text(json, "figure", figure->name);
        json_name(json, "value");
        put_value(json, figure, figure_value(figure, report));
        json_member_text(json, "target", target);
        if (verdict == FIGURE_PLAIN)
            json_member_raw(json, "met", SLICE("null"));
        else
            json_member_bool(json, "met", verdict == FIGURE_MET);
        json_object_end(json);
    }
    json_array_end(json);
}

static void put_histogram(struct json_writer *json, const struct ledger *ledger)
{
    json_member_array(json, "waits");
    for (int i = 0; i < LEDGER_HISTOGRAM; i++) {
        json_object_begin(json);
        json_name(json, "upToMs");
        if (ledger_histogram_bound(i) == INT64_MAX)
            json_put_null(json);
        else
            json_put_int(json, ledger_histogram_bound(i));
        json_member_int(json, "count", ledger->wait_histogram[i]);
        json_object_end(json);
    }
    json_array_end(json);
}

static void put_curves(struct json_writer *json, const struct ledger *ledger)
{
    static const struct {
        const char *name;
        size_t offset;
    } curves[] = {
        { "arrived", offsetof(struct ledger_step, arrived) },     { "requests", offsetof(struct ledger_step, requests) },
        { "delivered", offsetof(struct ledger_step, delivered) }, { "failed", offsetof(struct ledger_step, failed) },
        { "throttled", offsetof(struct ledger_step, throttled) }, { "dead", offsetof(struct ledger_step, dead) },
        { "queue", offsetof(struct ledger_step, queue) },
    };
    json_member_object(json, "curves");
    json_member_int(json, "stepMs", ledger->step_ms);
    for (size_t i = 0; i < sizeof curves / sizeof *curves; i++) {
        json_member_array(json, curves[i].name);
        for (size_t step = 0; step < ledger->step_count; step++) {
            int64_t value;
            memcpy(&value, (const char *)&ledger->steps[step] + curves[i].offset, sizeof value);
            json_put_int(json, value);
        }
        json_array_end(json);
    }
    json_object_end(json);
}

static void put_answers(struct json_writer *json, const struct model_figures *model)
{
    json_member_object(json, "answers");
    for (int i = 0; i < MODEL_ANSWER_COUNT; i++)
        json_member_int(json, model_answer_name((enum model_answer)i), model->answers[i]);
    json_object_end(json);
}

static void put_holds(struct json_writer *json, const struct sim_hold *holds)
{
    json_member_object(json, "heldMs");
    for (; holds->by; holds++)
        json_member_int(json, holds->by, holds->ms);
    json_object_end(json);
}

static void put_backlog(struct json_writer *json, const struct run *run)
{
    const struct backlog *backlog = run->settings->backlog;
    if (!backlog)
        return;
    json_member_object(json, "backlog");
    json_member_text(json, "destination", backlog->destination);
    json_member_text(json, "mode", run->result.mode);
    json_member_instant(json, "at", run->settings->start);
    json_member_int(json, "jobs", (int64_t)backlog->count);
    json_member_int(json, "pending", backlog->pending);
    json_member_int(json, "waiting", backlog->waiting);
    json_member_int(json, "running", backlog->running);
    json_member_int(json, "tenants", (int64_t)backlog->tenant_count);
    json_member_int(json, "leftOut", backlog->left_out);
    json_member_int(json, "otherJobs", backlog->other_jobs);
    json_member_int(json, "otherDestinations", backlog->other_destinations);
    json_object_end(json);
}

static void put_run(struct json_writer *json, const struct run *run)
{
    const struct sim_settings *settings = run->settings;
    json_object_begin(json);
    json_member_text(json, "title", run->title);
    json_member_text(json, "destination", settings->destination->name);
    json_member_int(json, "seed", (int64_t)settings->seed);
    json_member_int(json, "forMs", settings->load.for_ms);
    json_member_int(json, "tenants", settings->load.tenants);
    json_member_array(json, "outages");
    for (size_t i = 0; i < settings->model.outage_count; i++) {
        const struct model_outage *outage = &settings->model.outages[i];
        json_object_begin(json);
        json_member_int(json, "fromMs", outage->from_ms);
        json_member_int(json, "toMs", outage->to_ms);
        json_member_text(json, "failure", model_failure_name(outage->failure));
        json_object_end(json);
    }
    json_array_end(json);
    put_backlog(json, run);
    put_figures(json, &run->report);
    put_targets(json, run);
    put_answers(json, &run->result.model);
    put_holds(json, run->result.holds);
    put_histogram(json, &run->result.ledger);
    put_curves(json, &run->result.ledger);
    json_object_end(json);
}

void report_json(const struct run *runs, size_t count, struct buffer *out)
{
    struct json_writer json = json_begin(out);
    json_member_array(&json, "runs");
    for (size_t i = 0; i < count; i++)
        put_run(&json, &runs[i]);
    json_array_end(&json);
    if (count == 2) {
        json_member_object(&json, "differences");
        for (const struct figure *figure = figures; figure->name; figure++) {
            if (!first_of_name(figure))
                continue;
            json_name(&json, figure->name);
            put_value(&json, figure, figure_value(figure, &runs[1].report) - figure_value(figure, &runs[0].report));
        }
        json_object_end(&json);
    }
    json_object_end(&json);
    buffer_append_byte(out, '\n');
}
