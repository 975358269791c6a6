/*
 * folder.h - a folder of a test's own, and its end.
 */
#ifndef SUPPORT_FOLDER_H
#define SUPPORT_FOLDER_H

enum { FOLDER_BYTES = 64 };

/*
 * Makes one in $TMPDIR, or in memory where there is such a place: a real disk's syncs would only cost time. Both answer as
 * cmocka's setup and teardown do: 0 is good.
 */
int folder_make(char ret_folder[FOLDER_BYTES]);
/* With all that is in it. */
int folder_remove(const char *folder);

/* The one of a whole program, as its setup and teardown. */
extern char test_folder[FOLDER_BYTES];
int test_folder_setup(void **state);
int test_folder_teardown(void **state);

#endif
