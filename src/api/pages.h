/*
 * pages.h - what lists share.
 */
#ifndef API_PAGES_H
#define API_PAGES_H

#include "api/call.h"

/* A number that an earlier page gave; 0 when absent. False: answered already. */
bool call_cursor(struct call *call, const char *name, int64_t *ret_cursor);
/* "next": the cursor of the next page, as text, or null. */
void json_member_cursor(struct json_writer *json, int64_t next);

/* state, destination, tenant, code and cursor of the query string. False: answered already. */
bool job_filter_read(struct call *call, struct job_filter *ret_filter);

#endif
