/*
 * rules.h - the rules that a destination is sent to by, as figures for people: the page puts them into words.
 */
#ifndef API_OPERATE_RULES_H
#define API_OPERATE_RULES_H

#include "base/json.h"
#include "config/config.h"

/* The member `policy`. Nothing secret is in it, and nothing that is not in force. */
void rules_write(struct json_writer *json, const struct destination_config *config);

#endif
