/*
 * exec.h - a program a job: the payload is its standard input, its exit code the answer.
 */
#ifndef TRANSPORT_EXEC_EXEC_H
#define TRANSPORT_EXEC_EXEC_H

#include "transport/transport.h"

struct event_base;

enum { EXEC_DESCRIPTORS = 5 }; /* that a program under way takes of ours */

/* At most `processes_max` programs at a time, those that are being ended counted. The loop's thread starts them all. */
enum status exec_transport_new(struct event_base *loop, size_t processes_max, struct transport **ret_transport,
                               struct error *err) MUST_CHECK;

/* STATUS_UNSUPPORTED: the program cannot be run, as far as can be seen before; `err` names destination and setting. */
enum status exec_settings_check(const struct destination_config *destination, struct error *err) MUST_CHECK;

#endif
