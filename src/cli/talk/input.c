#include "cli/talk/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STEP_BYTES = 64 << 10 };

static int read_all(int descriptor, const char *name, size_t bytes_max, struct buffer *ret_bytes)
{
    for (;;) {
        char *room = buffer_reserve(ret_bytes, STEP_BYTES);
        if (!room && buffer_status(ret_bytes) == STATUS_LIMIT)
            return cli_fail(EXIT_USAGE, "%s is longer than the limit of %zu bytes", name, bytes_max);
        if (!room)
            return cli_fail(EXIT_FAILED, "no memory for %s", name);
        ssize_t got = read(descriptor, room, STEP_BYTES);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return cli_fail(EXIT_FAILED, "cannot read %s: %s", name, strerror(errno));
        if (got == 0)
            return EXIT_DONE;
        buffer_commit(ret_bytes, (size_t)got);
    }
}

int input_read(const char *path, size_t bytes_max, struct buffer *ret_bytes)
{
    buffer_init(ret_bytes, bytes_max + STEP_BYTES); /* once there is more, no other step fits */
    if (strcmp(path, "-") == 0)
        return read_all(STDIN_FILENO, "standard input", bytes_max, ret_bytes);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return cli_fail(EXIT_USAGE, "cannot open %s: %s", path, strerror(errno));
    int code = read_all(descriptor, path, bytes_max, ret_bytes);
    close(descriptor);
    return code;
}

/* A NUL is allowed in JSON, but many a reader stops there. */
static bool can_be_string(struct slice bytes)
{
    return utf8_is_valid(bytes) && slice_find(bytes, '\0') == bytes.len;
}

void input_payload(struct json_writer *json, struct slice bytes)
{
    if (can_be_string(bytes)) {
        json_member_string(json, "payload", bytes);
        return;
    }
    json_name(json, "payload_base64");
    json_put_base64(json, bytes);
}

bool input_agrees(const char *question)
{
    char answer[16];
    fprintf(stderr, "%s [y/N] ", question);
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}
