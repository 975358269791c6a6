/*
 * download.h - an answer of any length, to standard output or into a file.
 */
#ifndef CLI_TALK_DOWNLOAD_H
#define CLI_TALK_DOWNLOAD_H

#include "cli/talk/client.h"

/*
 * GETs the address. `path` NULL: to standard output; else the file has another name until it is whole, so that a broken
 * answer cannot be taken for a good one. Returns an exit code after its message.
 */
int download(const struct cli *cli, struct url *url, const char *path);

#endif
