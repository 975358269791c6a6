#include "cli/talk/download.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int download_to(const struct cli *cli, struct url *url, int descriptor)
{
    struct client client;
    struct reply reply = { 0 };
    int code = client_open(cli, &client);
    if (code == EXIT_DONE)
        code = client_call(&client, &(struct request){ .method = "GET", .url = url, .sink = descriptor }, &reply);
    reply_release(&reply);
    client_close(&client);
    return code;
}

int download(const struct cli *cli, struct url *url, const char *path)
{
    char *part = NULL;
    if (!path)
        return download_to(cli, url, STDOUT_FILENO);
    if (asprintf(&part, "%s.part", path) < 0)
        return cli_fail(EXIT_FAILED, "no memory for the file's name");
    int descriptor = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (descriptor < 0) {
        int code = cli_fail(EXIT_USAGE, "cannot write %s: %s", part, strerror(errno));
        free(part);
        return code;
    }
    int code = download_to(cli, url, descriptor);
    bool synced = fsync(descriptor) == 0;
    if (close(descriptor) != 0)
        synced = false;
    if (code == EXIT_DONE && (!synced || rename(part, path) != 0))
        code = cli_fail(EXIT_FAILED, "cannot write %s: %s", path, strerror(errno));
    if (code != EXIT_DONE)
        unlink(part);
    free(part);
    return code;
}
