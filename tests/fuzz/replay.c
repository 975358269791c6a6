/*
 * replay.c - runs a fuzz target over kept inputs, without a fuzzer.
 *
 *     replay_NAME FOLDER-OR-FILE...
 *
 * A target fails by crashing, by an assertion or by a sanitizer's report. No input at all is a
 * failure too: it would mean that nothing was tested.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int complain(const char *path)
{
    fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
    return -1;
}

/* Inputs are handed over in memory of exactly their size, so that a read behind the end is seen. */
static int replay_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return complain(path);
    uint8_t *data = malloc(size ? size : 1);
    int result = 0;
    if (!data || fread(data, 1, size, file) != size)
        result = complain(path);
    else
        LLVMFuzzerTestOneInput(data, size);
    free(data);
    fclose(file);
    return result;
}

static int replay(const char *path, size_t *count);

static int replay_folder(const char *path, size_t *count)
{
    struct dirent **entries;
    int found = scandir(path, &entries, NULL, alphasort);
    if (found < 0)
        return complain(path);
    int result = 0;
    for (int i = 0; i < found; i++) {
        char inner[4096];
        int len = snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
        if (len < 0 || (size_t)len >= sizeof inner) {
            errno = ENAMETOOLONG;
            result = complain(entries[i]->d_name);
        } else if (entries[i]->d_name[0] != '.' && replay(inner, count) != 0) {
            result = -1;
        }
        free(entries[i]);
    }
    free(entries);
    return result;
}

static int replay(const char *path, size_t *count)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return complain(path);
    if (S_ISDIR(status.st_mode))
        return replay_folder(path, count);
    ++*count;
    return replay_file(path, (size_t)status.st_size);
}

int main(int argc, char **argv)
{
    size_t count = 0;
    int result = 0;
    for (int i = 1; i < argc; i++)
        if (replay(argv[i], &count) != 0)
            result = -1;
    fprintf(stderr, "replay: %zu inputs\n", count);
    return result == 0 && count > 0 ? 0 : 1;
}
