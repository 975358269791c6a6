/*
 * token_index.h - finds all of many tokens in one pass over a text (Aho-Corasick).
 *
 * Letters match in either case. Tokens are added, the index is finished, and from then on
 * it is read-only and may be searched by many threads.
 */
#ifndef CORE_DECISION_TOKEN_INDEX_H
#define CORE_DECISION_TOKEN_INDEX_H

#include "base/slice.h"
#include "base/status.h"

enum { TOKEN_STATES_MAX = 65000 };

struct token_index;

enum status token_index_new(struct token_index **ret_index) MUST_CHECK;
void token_index_free(struct token_index *index);

/* `token` in lower case, not empty. Of equal tokens the first stays: *ret_value is its value, else `value`. */
enum status token_index_add(struct token_index *index, struct slice token, size_t value, size_t *ret_value) MUST_CHECK;
enum status token_index_finish(struct token_index *index) MUST_CHECK;

/* Calls `found` for each occurrence; `end` is the offset just behind it. */
void token_index_search(const struct token_index *index, struct slice text,
                        void (*found)(void *context, size_t value, size_t end), void *context);

#endif
