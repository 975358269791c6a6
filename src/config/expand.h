/*
 * expand.h - references in values: ${NAME}, ${NAME:-default}, ${file:PATH}, and $${ for a literal ${.
 *
 * They are filled in after the YAML was read, and in values only: what comes in cannot
 * become YAML. A filled-in value is marked private and never shows in a message.
 */
#ifndef CONFIG_EXPAND_H
#define CONFIG_EXPAND_H

#include "config/document.h"

enum { REFERENCE_BYTES_MAX = 64 * 1024, EXPANDED_BYTES_MAX = 16 << 20 };

/*
 * Fills in all values under `root`. Relative paths start at `folder` (with its slash, or empty). What was filled in is
 * added to the secrets of `problems`, in `secrets_memory`.
 */
enum status document_expand(struct node *root, const char *file, struct slice folder, struct arena *arena,
                            struct arena *secrets_memory, struct problems *problems) MUST_CHECK;

/* Reads a whole file of up to `limit` bytes; STATUS_LIMIT when it has more. */
enum status file_read(const char *path, size_t limit, bool regular_only, struct buffer *ret_content,
                      struct error *err) MUST_CHECK;
/* The part of a path up to and with its last slash; may be empty. */
struct slice path_folder(const char *path);

#endif
