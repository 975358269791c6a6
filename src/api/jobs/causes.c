#include "api/jobs/causes.h"

#include "base/hash.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUCKETS = 1 << 16, /* three megabytes, when all are used */
    WAYS = 2,          /* in each, the one that was used last before the other */
};

struct cause {
    uint64_t hash; /* 0: a free place */
    char print[FINGERPRINT_BYTES];
};

struct causes {
    uint64_t seed;
    struct cause buckets[BUCKETS][WAYS];
};

struct causes *causes_new(uint64_t seed)
{
    struct causes *causes = calloc(1, sizeof *causes);
    if (causes)
        causes->seed = seed;
    return causes;
}

void causes_free(struct causes *causes)
{
    free(causes);
}

static struct cause made(struct slice code, struct slice text, uint64_t hash)
{
    struct fingerprint print;
    struct cause cause = { .hash = hash };
    fingerprint_make(SLICE(""), code, text, &print);
    memcpy(cause.print, print.text, FINGERPRINT_BYTES);
    return cause;
}

void causes_find(struct causes *causes, struct slice code, struct slice text, char ret_text[FINGERPRINT_BYTES + 1])
{
    struct cause cause;
    if (causes) {
        uint64_t hash = hash_slice(causes->seed, hash_slice(causes->seed, 1, code), text) | 1;
        struct cause *bucket = causes->buckets[hash / 2 % BUCKETS];
        assert(hash != 0);
        cause = bucket[0].hash == hash ? bucket[0] : bucket[1].hash == hash ? bucket[1] : made(code, text, hash);
        if (bucket[0].hash != hash) {
            bucket[1] = bucket[0];
            bucket[0] = cause;
        }
    } else {
        cause = made(code, text, 0);
    }
    memcpy(ret_text, cause.print, FINGERPRINT_BYTES);
    ret_text[FINGERPRINT_BYTES] = '\0';
}
