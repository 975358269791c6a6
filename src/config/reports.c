#include "config/loading.h"

#include "config/checks.h"
#include "config/destination.h"

#include <string.h>

#define REPORT(member) offsetof(struct report_config, member)

static const struct choice everies[] = { { "day", false }, { "week", true }, { NULL, 0 } };

/* Minutes after midnight; negative: it is no time of day. */
static int minutes_of(struct slice text)
{
    const char *t = text.data;
    if (text.len != 5 || t[2] != ':' || !ascii_is_digit(t[0]) || !ascii_is_digit(t[1]) || !ascii_is_digit(t[3]) ||
        !ascii_is_digit(t[4]))
        return -1;
    int hour = 10 * (t[0] - '0') + t[1] - '0', minute = 10 * (t[3] - '0') + t[4] - '0';
    return hour < 24 && minute < 60 ? 60 * hour + minute : -1;
}

static const char *check_time(struct slice text)
{
    return minutes_of(text) < 0 ? "must be a time of day, as 07:00" : NULL;
}

static const struct setting report_rows[] = {
    { "every", SETTING_ENUM, REPORT(weekly), "day",
      .meaning = "`day`: of the day before. `week`: on Mondays, of the week before.", .choices = everies },
    { "at", SETTING_TEXT, REPORT(at), "07:00", .meaning = "When it is sent.", .check = check_time },
    { "zone", SETTING_TEXT, REPORT(zone), "UTC",
      .meaning = "Where it is then so late: `UTC`, an offset like `-03:00`, or a place like `America/Asuncion`." },
    { "to", SETTING_TEXT, REPORT(to), .meaning = "The name of an item of notify, which is sent it whatever its `on` says.",
      .check = check_name },
};

static void item_check(struct settings *settings, const void *item, struct place place)
{
    const struct report_config *report = item;
    if (!report->to)
        problem_add(settings->problems, place, "an item of reports needs to: the name of an item of notify");
}

const struct section reports_section = {
    .name = "reports",
    SECTION_ROWS(report_rows),
    .meaning = "A list: each item sends the daily or the weekly report to somebody, once, also when the daemon was down\n"
               "then. Mail has it as text and as a page with charts; a webhook gets `{\"type\": \"report.day\", \"timestamp\":\n"
               "..., \"data\": {...}}` with what `GET /v1/reports/daily` shows.\n"
               "\n"
               "```yaml\n"
               "reports:\n"
               "  - { every: day, at: \"07:00\", zone: America/Sao_Paulo, to: billing }\n"
               "  - { every: week, at: \"08:00\", to: ops }\n"
               "```",
    .item = { "every: day, at: \"07:00\", to: ops", sizeof(struct report_config), REPORTS_MAX, false, item_check },
};

static const struct notify_config *notify_of(const struct config *config, const char *name)
{
    for (size_t i = 0; name && i < config->notify_count; i++)
        if (config->notify[i].name && strcmp(config->notify[i].name, name) == 0)
            return &config->notify[i];
    return NULL;
}

void reports_finish(struct settings *settings, const struct node *root)
{
    struct config *config = settings->root;
    struct place place = settings_place_under(settings, root, SLICE("reports"));
    for (size_t i = 0; i < config->report_count; i++) {
        struct report_config *report = &config->reports[i];
        struct error error;
        report->at_minute = report->at ? minutes_of(slice_from(report->at)) : 0;
        report->notify = notify_of(config, report->to);
        if (report->to && !report->notify)
            problem_add(settings->problems, place, "reports: there is no item of notify called \"%s\"", report->to);
        if (report->zone && zone_load(report->zone, settings->memory, &report->zone_rules, &error) != STATUS_OK)
            problem_add(settings->problems, place, "%s", error.text);
    }
}
