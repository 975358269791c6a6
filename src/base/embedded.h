/*
 * embedded.h - files that were built into the program by tools/embed.
 */
#ifndef BASE_EMBEDDED_H
#define BASE_EMBEDDED_H

#include <stddef.h>

struct embedded_file {
    const char *name; /* NULL ends a table */
    const char *data; /* followed by a NUL that is not counted */
    size_t len;
    const char *stem; /* the name without its extension */
};

extern const struct embedded_file embedded_presets[]; /* presets/, by file name */
extern const struct embedded_file embedded_api[];     /* the API's description, and the page */
extern const struct embedded_file embedded_reference[]; /* what stands before the tables of docs/configuration.md */
extern const struct embedded_file embedded_report[];  /* the head of the page of a simulation */
extern const struct embedded_file embedded_help[];    /* src/cli/help, a page a command */

#endif
