/*
 * notify.h - news as jobs, of an alert or of a single job that died: one for each entry of the configuration that wants it.
 */
#ifndef ENGINE_ALERTS_NOTIFY_H
#define ENGINE_ALERTS_NOTIFY_H

#include "config/config.h"
#include "engine/alerts/alert_record.h"

struct arena;
struct job;
struct op_insert;

/* A job that died, as it was claimed. */
struct dead_letter {
    const struct job *job;
    struct slice destination, dead_code;
    struct slice code, error; /* of its last attempt */
    struct slice rule;        /* that judged it; may be empty */
};

/* Whose jobs these are. Nothing is counted or raised for them, so that news never makes news. */
#define NOTIFY_TENANT SLICE("insist.notify")

bool notify_wants(const struct notify_config *notify, const struct alert_record *record);
/* How many of the configuration do. */
size_t notify_count(const struct config *config, const struct alert_record *record);
/* The job for one of them. Equal news has the same id, so that it is never there twice. STATUS_NO_MEMORY. */
enum status notify_job(const struct config *config, const struct notify_config *notify, const struct alert_record *record,
                       enum alert_step step, instant now, struct arena *memory, struct op_insert *ret_insert) MUST_CHECK;

/* Whether an entry wants to hear of this one by itself, and the job that tells it; once for each time that it dies. */
bool letter_wants(const struct notify_config *notify, const struct dead_letter *letter);
enum status letter_job(const struct config *config, const struct notify_config *notify, const struct dead_letter *letter,
                       instant now, struct arena *memory, struct op_insert *ret_insert) MUST_CHECK;

/* A report, to whom it is sent. */
struct report_message {
    const char *type;   /* "report.day" */
    struct slice id;    /* the same for the same one */
    struct slice title, text, html, data; /* data: JSON */
};
enum status report_job(const struct config *config, const struct notify_config *notify, const struct report_message *report,
                       instant now, struct arena *memory, struct op_insert *ret_insert) MUST_CHECK;

#endif
