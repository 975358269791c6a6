/*
 * doctor.h - `insist doctor`: checks, each with what to do about it.
 */
#ifndef CLI_OFFLINE_DOCTOR_H
#define CLI_OFFLINE_DOCTOR_H

#include "base/json.h"
#include "cli/cli.h"
#include "config/config.h"

enum finding { FINDING_OK, FINDING_WARN, FINDING_FAIL, FINDING_COUNT };

struct doctor {
    const struct cli *cli;
    const struct config *config; /* NULL: it cannot be loaded */
    instant now;
    int counts[FINDING_COUNT];
    bool disk_is_low;        /* by limits.disk_free */
    int code;                /* not EXIT_DONE: standard output is gone */
    struct buffer out;       /* with --output json all of it, else the line that is being printed */
    struct json_writer json; /* into out */
};

/* One line: what was looked at and how it is. A warning or failure says what to do. */
void doctor_tell(struct doctor *doctor, enum finding finding, const char *check, const char *format, ...) PRINTF_LIKE(4, 5);

/* The groups of checks, in the order they are done. */
void doctor_store(struct doctor *doctor);
void doctor_machine(struct doctor *doctor);
void doctor_files(struct doctor *doctor);
void doctor_network(struct doctor *doctor);
/* Of sources; with `network` of destinations too. */
void doctor_redis(struct doctor *doctor, bool network);

#endif
