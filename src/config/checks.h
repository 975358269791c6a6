/*
 * checks.h - what a text of a setting must look like beyond its kind.
 *
 * Each returns NULL, or what is wrong as the end of a sentence: "must be ...".
 */
#ifndef CONFIG_CHECKS_H
#define CONFIG_CHECKS_H

#include "config/config.h"

enum { DESTINATION_NAME_BYTES_MAX = 64 };

const char *check_name(struct slice text);        /* of a destination */
const char *check_line(struct slice text);        /* no line breaks or control characters */
const char *check_method(struct slice text);      /* POST */
const char *check_http_url(struct slice text);    /* http:// or https:// */
const char *check_store(struct slice text);       /* sqlite:PATH, memory:, ... */
const char *check_email(struct slice text);       /* one address */
const char *check_helo(struct slice text);        /* mail.example.org, or [192.0.2.1] */
const char *check_alert(struct slice text);       /* critical, max_retries_exceeded */
const char *check_zone(struct slice text);        /* -03:00, America/Sao_Paulo */
const char *check_reason(struct slice text);      /* Retry {n} of {max} */
const char *check_error_code(struct slice text);  /* json:/error/code */
const char *check_maintenance(struct slice text); /* Sun 02:00-04:00 */
const char *check_secret(struct slice text);      /* whsec_... */
const char *check_namespace(struct slice text);   /* smtp */
const char *check_region(struct slice text);      /* sa-east-1 */
const char *check_short(struct slice text);       /* a line of up to 255 bytes */
const char *check_variable(struct slice text);    /* of an environment */

bool maintenance_parse(struct slice text, struct maintenance_window *ret_window);

#endif
