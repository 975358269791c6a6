/*
 * folder.h - a folder of a test's own, and its end.
 */
#ifndef SUPPORT_FOLDER_H
#define SUPPORT_FOLDER_H

enum { FOLDER_BYTES = 64 };

/* Makes one under `place`, such as "/tmp". Both answer as cmocka's setup and teardown do: 0 is good. */
int folder_make(const char *place, char ret_folder[FOLDER_BYTES]);
/* With all that is in it. */
int folder_remove(const char *folder);

#endif
