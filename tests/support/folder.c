#include "support/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A longer one would leave no room for the name of a socket in it. */
enum { PLACE_BYTES_MAX = 32 };

char test_folder[FOLDER_BYTES];

static const char *place(void)
{
    const char *wanted = getenv("TMPDIR");
    if (wanted && wanted[0] && strlen(wanted) < PLACE_BYTES_MAX)
        return wanted;
    return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

int folder_make(char ret_folder[FOLDER_BYTES])
{
    snprintf(ret_folder, FOLDER_BYTES, "%s/insist-test-XXXXXX", place());
    return mkdtemp(ret_folder) ? 0 : -1;
}

int folder_remove(const char *folder)
{
    char command[FOLDER_BYTES + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

int test_folder_setup(void **state)
{
    (void)state;
    return folder_make(test_folder);
}

int test_folder_teardown(void **state)
{
    (void)state;
    return folder_remove(test_folder);
}
