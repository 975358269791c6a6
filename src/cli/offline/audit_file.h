/*
 * audit_file.h - a trail as a file of its own: one JSON object a line, with all that its hashes are made of.
 *
 * The first line says what the first event builds on, then each event has one, the oldest first. Texts are as the store has
 * them, `data` too, which is JSON within a string: its bytes are what was hashed.
 */
#ifndef CLI_OFFLINE_AUDIT_FILE_H
#define CLI_OFFLINE_AUDIT_FILE_H

#include "cli/cli.h"
#include "store/trail.h"

/* The lines. */
void audit_line_begin(struct buffer *out, const struct trail_head *anchor);
void audit_line_event(struct buffer *out, const struct event *event);

/* Checks a file of such lines, "-": standard input. As store_sqlite_trail. */
enum status audit_file_verify(const char *path, const struct trail_key *key, const struct trail_head *expected,
                              size_t expected_count, struct trail_check *ret_check, struct error *err) MUST_CHECK;

#endif
