/*
 * dead_ages.h - how old the dead letters are, by destination.
 *
 * The store knows that of each dead letter, but only by reading it. So each look reads one page, and a pass that does not
 * end in it goes on with the next look: the answer is that of the last whole pass, and of few dead letters it is of now.
 */
#ifndef API_OBSERVE_DEAD_AGES_H
#define API_OBSERVE_DEAD_AGES_H

#include "base/histogram.h"
#include "base/map.h"
#include "store/store.h"

struct dead_ages {
    struct map known;    /* destination -> struct histogram, ms: of the last whole pass */
    struct map counting; /* of this one */
    int64_t before_seq;  /* where it stands; 0: none is under way */
};

enum { DEAD_AGES_LOOKS = 40 }; /* of a scrape: a thousand dead letters */

extern const struct histogram_bounds measured_age;

enum status dead_ages_new(uint64_t seed, struct dead_ages **ret_ages, struct error *err) MUST_CHECK;
void dead_ages_free(struct dead_ages *ages); /* accepts NULL */
/* Reads the next page. A failure ends the pass and keeps what is known. */
enum status dead_ages_look(struct dead_ages *ages, struct store_reader *reader, instant now, struct error *err) MUST_CHECK;
/* Notes that there are none. */
void dead_ages_none(struct dead_ages *ages);
/* NULL: it has none. Valid until the next look. */
const struct histogram *dead_ages_of(const struct dead_ages *ages, struct slice destination);

#endif
