#include "api/operate/incident_view.h"
#include "cli/operate/operate.h"
#include "cli/options.h"
#include "cli/talk/action.h"
#include "cli/talk/pages.h"

#include <inttypes.h>
#include <string.h>

static int list(const struct cli *cli)
{
    static const struct shown columns[] = {
        { "NAME", "name", SHOW_TEXT },           { "MODE", "mode", SHOW_STATE },
        { "HELD BY", "held_by", SHOW_TEXT },     { "PENDING", "pending", SHOW_NUMBER },
        { "RUNNING", "running", SHOW_NUMBER },   { "WAITING", "waiting", SHOW_NUMBER },
        { "DEAD", "dead", SHOW_NUMBER },         { "TENANTS", "tenants", SHOW_NUMBER },
        { "TRANSPORT", "transport", SHOW_TEXT }, { "PRESET", "preset", SHOW_TEXT },
        { "URL", "url", SHOW_BRIEF },            { "DESCRIPTION", "description", SHOW_BRIEF },
    };
    const struct pages pages = { .path = "/v1/destinations", .member = "destinations", PAGES_COLUMNS(columns), .all = true };
    return pages_print(cli, &pages, NULL);
}

/* ---- one, in words ---- */

static void say(json_t *words, const char *name, struct buffer *text)
{
    if (text->len > 0)
        json_object_set_new(words, name, json_stringn(text->data, text->len));
    buffer_clear(text);
}

static void append_member(const json_t *answer, const char *before, const char *name, enum show_as as, struct buffer *text)
{
    if (!json_object_get(answer, name))
        return;
    buffer_append_text(text, before);
    show_value(json_object_get(answer, name), as, text);
}

/* As say_mode: " since ..., because ..." of the mode, or of the one that a pause hides. */
static void append_cause(const json_t *answer, const char *mode, struct buffer *text)
{
    const char *cause = member_text(answer, "mode_cause");
    append_member(answer, " since ", "mode_since", SHOW_TIME, text);
    if (cause)
        buffer_printf(text, ", because %s",
                      cause_words(cause_from_name(slice_from(cause)), mode_from_name(slice_from(mode))));
}

/* "contingency since 2026-11-15 21:24:10Z, because an operator held it: they called". */
static void say_mode(const json_t *answer, json_t *words, struct buffer *text)
{
    const char *behind = member_text(answer, "mode_behind");
    append_member(answer, "", "mode", SHOW_TEXT, text);
    if (!behind)
        append_cause(answer, member_text(answer, "mode"), text);
    append_member(answer, ": ", "pause_reason", SHOW_TEXT, text);
    say(words, "mode", text);
    if (behind) {
        append_member(answer, "", "mode_behind", SHOW_TEXT, text);
        append_cause(answer, behind, text);
        append_member(answer, ": ", "mode_behind_reason", SHOW_TEXT, text);
        say(words, "behind", text);
    }
    append_member(answer, "by ", "held_by", SHOW_TEXT, text);
    append_member(answer, " since ", "held_since", SHOW_TIME, text);
    append_member(answer, " until ", "held_until", SHOW_TIME, text);
    append_member(answer, ", the next look at ", "next_look_at", SHOW_TIME, text);
    if (json_object_get(answer, "held_by"))
        say(words, "held", text);
    buffer_clear(text);
}

static void say_jobs(const json_t *answer, json_t *words, struct buffer *text)
{
    static const char *const states[] = { "pending", "running", "waiting", "dead", "completed", "cancelled" };
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        buffer_printf(text, "%s%" PRId64 " %s", i > 0 ? ", " : "", member_int(answer, states[i]), states[i]);
    if (json_object_get(answer, "tenants"))
        buffer_printf(text, "; of %" PRId64 " tenant%s", member_int(answer, "tenants"),
                      member_int(answer, "tenants") == 1 ? "" : "s");
    append_member(answer, "; the next waits since about ", "oldest_at", SHOW_TIME, text);
    say(words, "jobs", text);
}

static void say_pace(const json_t *answer, json_t *words, struct buffer *text)
{
    if (json_object_get(answer, "under_way")) {
        buffer_printf(text, "%" PRId64 " under way", member_int(answer, "under_way"));
        append_member(answer, ", at most ", "concurrency_why", SHOW_TEXT, text);
        append_member(answer, "; more is tried from ", "concurrency_rises_at", SHOW_TIME, text);
        say(words, "sends", text);
    }
    if (json_object_get(answer, "delivered_last_minute")) {
        buffer_printf(text, "%" PRId64 " delivered, %" PRId64 " failed",
                      member_int(answer, "delivered_last_minute"), member_int(answer, "failed_last_minute"));
        say(words, "minute", text);
    }
    append_member(answer, "", "url", SHOW_TEXT, text);
    append_member(answer, text->len > 0 ? ", over " : "", "transport", SHOW_TEXT, text);
    append_member(answer, ", preset ", "preset", SHOW_TEXT, text);
    say(words, "to", text);
}

/* Says such as "held, so that only looks go there: job 17 was refused at the second address: http:401, ...". */
static void say_second(const json_t *answer, json_t *words, struct buffer *text)
{
    if (json_is_true(json_object_get(answer, "fallback")))
        buffer_append_text(text, "jobs go there while the first is away");
    else if (json_object_get(answer, "fallback_blocked"))
        buffer_append_text(text, "held, so that only looks go there");
    append_member(answer, ": ", "fallback_blocked", SHOW_TEXT, text);
    append_member(answer, "; the next look, if it is needed, at ", "fallback_look_at", SHOW_TIME, text);
    say(words, "second", text);
}

static json_t *words_of(const json_t *answer)
{
    struct buffer text = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    json_t *words = json_object();
    json_object_set(words, "name", json_object_get(answer, "name"));
    json_object_set(words, "description", json_object_get(answer, "description"));
    say_pace(answer, words, &text);
    say_mode(answer, words, &text);
    say_second(answer, words, &text);
    say_jobs(answer, words, &text);
    json_object_set(words, "breaker", json_object_get(answer, "breaker"));
    if (json_is_false(json_object_get(answer, "configured")))
        json_object_set_new(words, "configured", json_string("no: its jobs wait until it is in the configuration again"));
    buffer_release(&text);
    return words;
}

static int show_one(const struct cli *cli, json_t *answer, struct buffer *out)
{
    static const struct shown facts[] = {
        { "name", "name", SHOW_TEXT },       { "what it is", "description", SHOW_TEXT },
        { "sends to", "to", SHOW_TEXT },     { "configured", "configured", SHOW_TEXT },
        { "mode", "mode", SHOW_STATE },      { "when resumed", "behind", SHOW_TEXT },
        { "held", "held", SHOW_TEXT },
        { "second address", "second", SHOW_TEXT }, { "jobs", "jobs", SHOW_TEXT },
        { "at once", "sends", SHOW_TEXT },   { "last minute", "minute", SHOW_TEXT },
        { "breaker", "breaker", SHOW_TEXT },
    };
    static const struct shown tenants[] = {
        { "PAUSED TENANT", "tenant", SHOW_TEXT },
        { "SINCE", "since", SHOW_TIME },
        { "BECAUSE", "reason", SHOW_BRIEF },
    };
    /* What the words above tell; whatever else there is follows as it is. */
    static const char *const shown[] = {
        "name", "description", "mode", "mode_since", "mode_cause", "mode_behind", "mode_behind_reason", "pause_reason",
        "held_by", "held_since", "held_until",
        "next_look_at", "pending", "running", "waiting", "dead", "completed", "cancelled", "tenants", "oldest_at",
        "under_way", "concurrency", "concurrency_now", "concurrency_why", "concurrency_rises_at",
        "delivered_last_minute", "failed_last_minute", "delivered_by_minute",
        "failed_by_minute", "url", "transport", "preset", "breaker", "configured", "paused", "tenants_paused",
        "fallback", "fallback_blocked", "fallback_look_at",
    };
    json_t *words = words_of(answer);
    json_t *paused = json_incref(json_object_get(answer, "paused"));
    show_facts(cli, words, facts, sizeof facts / sizeof *facts, out);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        json_object_del(answer, shown[i]);
    if (json_object_size(answer) > 0) {
        buffer_append_byte(out, '\n');
        show_others(cli, answer, NULL, 0, out);
    }
    if (json_array_size(paused) > 0) {
        buffer_append_byte(out, '\n');
        show_table(cli, paused, tenants, sizeof tenants / sizeof *tenants, out);
    }
    json_decref(paused);
    json_decref(words);
    return EXIT_DONE;
}

/* A pause hides what was ordered behind it. */
static int show_ordered(json_t *answer, const char *behind, struct buffer *out)
{
    const char *mode = member_text(answer, "mode");
    show_value(json_object_get(answer, "name"), SHOW_TEXT, out);
    buffer_append_text(out, ": ");
    show_value(json_object_get(answer, "mode"), SHOW_TEXT, out);
    if (mode && strcmp(mode, "paused") == 0)
        buffer_printf(out, ", and %s", behind);
    buffer_append_byte(out, '\n');
    return EXIT_DONE;
}

static int show_entered(UNUSED const struct cli *cli, json_t *answer, struct buffer *out)
{
    return show_ordered(answer, "in contingency when it is resumed", out);
}

static int show_left(UNUSED const struct cli *cli, json_t *answer, struct buffer *out)
{
    return show_ordered(answer, "comes back when it is resumed", out);
}

int command_dest(struct cli *cli)
{
    const char *reason = NULL, *tenant = NULL;
    bool leave = false;
    const struct option_row rows[] = {
        { "reason", '\0', .value = &reason, .utf8 = true },
        { "tenant", 't', .value = &tenant, .utf8 = true },
        { "leave", '\0', .flag = &leave },
        { 0 },
    };
    if (!command_options(cli, rows, 2))
        return cli->code;
    const char *what = arguments_action(cli);
    bool pauses = strcmp(what, "pause") == 0;
    bool resumes = strcmp(what, "resume") == 0;
    bool lists = strcmp(what, "list") == 0;
    bool contingency = strcmp(what, "contingency") == 0;
    bool enter = !leave;
    if (!pauses && !resumes && !contingency && !lists && strcmp(what, "show") != 0)
        return cli_usage("dest", "say what to do: list, show, pause, resume or contingency, not %s", what);
    if (reason && !pauses && !(contingency && enter))
        return cli_usage("dest", "--reason goes with pause and contingency");
    if (leave && !contingency)
        return cli_usage("dest", "--leave goes with contingency");
    if (tenant && !pauses && !resumes)
        return cli_usage("dest", "--tenant goes with pause and resume");
    if (lists && cli->arguments.count == 2)
        return cli_usage("dest", "unexpected argument \"%s\"", cli->arguments.items[1]);
    if (lists)
        return list(cli);
    if (cli->arguments.count < 2)
        return cli_usage("dest", "name the destination");
    struct action action = {
        .method = "GET", .path = "/v1/destinations", .name = cli->arguments.items[1], .show = show_one
    };
    if (pauses || resumes || contingency)
        action = (struct action){ .method = "POST", .path = action.path, .name = action.name, .verb = what,
                                  .show = !contingency ? NULL : enter ? show_entered : show_left,
                                  .members = { { "enter", NULL, contingency ? &enter : NULL },
                                               { "reason", reason, NULL },
                                               { "tenant", tenant, NULL } } };
    return action_run(cli, &action);
}
