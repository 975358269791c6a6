/*
 * said.h - what the program says on standard error while a test listens.
 */
#ifndef TESTS_SAID_H
#define TESTS_SAID_H

/* From here on standard error goes to a file that only this test knows. */
void said_begin(void);
/* Standard error is as before. What was said meanwhile, with its line ends; may be written to, until the next said_end. */
char *said_end(void);

#endif
