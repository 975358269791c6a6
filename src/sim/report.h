/*
 * report.h - a simulation in figures: the documents' indicators with their targets, what the destination
 * suffered, how the outage passed, how fair it was. As JSON and as one HTML page.
 *
 * Every figure is one row of a table, read by all forms of the report.
 */
#ifndef SIM_REPORT_H
#define SIM_REPORT_H

#include "base/buffer.h"
#include "sim/sim.h"

/* NAN: it cannot be said (no job was retried, there was no outage...). Shares are 0 to 1, times milliseconds. */
struct report {
    struct { double all, completed, permanent, exhausted, expired, in_doubt, refused, open; } jobs;
    double success_after_retry, attempts_mean, lost, success_median_ms, success_mean_ms, permanent, exhausted;
    double longest_wait, wait_mean_ms, wait_deviation;
    double waited_median_ms, waited_p99_ms; /* from arrival to success */
    struct { double all, failed, peak_second, peak_at_once, duplicates, goodput; } requests;
    double outage_requests, outage_queue_peak, drain_ms, recovery_ms;
    double jain, small_p99_ms;
    double backlog, backlog_ended_ms, health_checks;
    double ended_ms;
};

/* One simulated configuration: what the report is made from. */
struct run {
    const char *title;
    const struct sim_settings *settings;
    struct sim_result result;
    struct report report;
};

enum figure_unit { UNIT_COUNT, UNIT_SHARE, UNIT_TIME, UNIT_NUMBER };
enum figure_target { TARGET_NONE, TARGET_AT_LEAST, TARGET_AT_MOST, TARGET_BELOW };
enum figure_verdict { FIGURE_PLAIN, FIGURE_MET, FIGURE_MISSED };

struct figure {
    const char *group; /* heading */
    const char *rule;  /* "S0-081"; "": no document asks for it */
    const char *name;  /* in JSON */
    const char *label; /* for people */
    enum figure_unit unit;
    size_t offset; /* in struct report */
    enum figure_target target;
    double bound;
};

/* In the order of the report; a NULL name ends. */
extern const struct figure figures[];

/* Fills run->report from run->result. STATUS_NO_MEMORY only. */
enum status report_make(struct run *run, struct error *err) MUST_CHECK;

/* What of a store's backlog is in the run, and what is not: one sentence, for a run that has one. */
void report_backlog(const struct run *run, struct buffer *out);

double figure_value(const struct figure *figure, const struct report *report);
/* False: no run has it and no document asks for it, so a reader learns nothing from its row. */
/* Whether the run is of a kind whose documents set this target. */
bool figure_is_asked_for(const struct figure *figure, const struct run *run);
bool figure_shown(const struct figure *figure, const struct run *runs, size_t count);
enum figure_verdict figure_judge(const struct figure *figure, const struct report *report);
/* "97.3%", "1h4m", "-" when it cannot be said. */
enum { FIGURE_TEXT_BYTES = 64 };
void figure_text(const struct figure *figure, double value, char ret_text[FIGURE_TEXT_BYTES]);
/* The difference of two values with its sign; "" when one of them cannot be said. */
void figure_difference(const struct figure *figure, double from, double to, char ret_text[FIGURE_TEXT_BYTES]);
/* "at least 85%"; "" without a target. */
void figure_target_text(const struct figure *figure, char ret_text[FIGURE_TEXT_BYTES]);

/* One JSON object, with a line feed. */
void report_json(const struct run *runs, size_t count, struct buffer *out);
/* A page that needs nothing else. */
void report_html(const struct run *runs, size_t count, struct buffer *out);

#endif
