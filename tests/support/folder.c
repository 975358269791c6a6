#include "support/folder.h"

#include <stdio.h>
#include <stdlib.h>

int folder_make(const char *place, char ret_folder[FOLDER_BYTES])
{
    snprintf(ret_folder, FOLDER_BYTES, "%s/insist-test-XXXXXX", place);
    return mkdtemp(ret_folder) ? 0 : -1;
}

int folder_remove(const char *folder)
{
    char command[FOLDER_BYTES + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}
