/*
 * input.h - what a person gives a command: payloads from files, and a yes.
 */
#ifndef CLI_TALK_INPUT_H
#define CLI_TALK_INPUT_H

#include "base/json.h"
#include "cli/cli.h"

enum { INPUT_BYTES_MAX = 32 << 20 }; /* in base64 it still fits into one request */

/* All bytes of the file, or of standard input when it is "-", up to `bytes_max`. EXIT_DONE, or a code after its message. */
int input_read(const char *path, size_t bytes_max, struct buffer *ret_bytes);

/* The members of a request's payload: `payload` when the bytes can be a JSON string, else `payload_base64`. */
void input_payload(struct json_writer *json, struct slice bytes);

/* Asks a person, who says yes or no. */
bool input_agrees(const char *question);

#endif
