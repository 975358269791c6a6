#include "base/hash.h"

struct sip {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotate_left(uint64_t value, unsigned bits)
{
    return (value << bits) | (value >> (64 - bits));
}

static void sip_round(struct sip *s)
{
    s->v0 += s->v1;
    s->v1 = rotate_left(s->v1, 13) ^ s->v0;
    s->v0 = rotate_left(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotate_left(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotate_left(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotate_left(s->v1, 17) ^ s->v2;
    s->v2 = rotate_left(s->v2, 32);
}

static void sip_word(struct sip *s, uint64_t word)
{
    s->v3 ^= word;
    sip_round(s);
    s->v0 ^= word;
}

/* Little-endian on every machine: the value is stored and must not depend on where it was made. */
static uint64_t load_word(const unsigned char *bytes, size_t len)
{
    uint64_t word = 0;
    for (size_t i = 0; i < len; i++)
        word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

/* The same of eight, written so that compilers make one instruction of it where that does. */
static uint64_t load_eight(const unsigned char *b)
{
    return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24 | (uint64_t)b[4] << 32 |
           (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 | (uint64_t)b[7] << 56;
}

uint64_t hash_slice(uint64_t key0, uint64_t key1, struct slice data)
{
    struct sip s = { key0 ^ 0x736f6d6570736575u, key1 ^ 0x646f72616e646f6du, key0 ^ 0x6c7967656e657261u,
                     key1 ^ 0x7465646279746573u };
    const unsigned char *bytes = (const unsigned char *)(data.data ? data.data : "");
    size_t whole = data.len - data.len % 8;

    for (size_t i = 0; i < whole; i += 8)
        sip_word(&s, load_eight(bytes + i));
    sip_word(&s, (uint64_t)data.len << 56 | load_word(bytes + whole, data.len - whole));
    s.v2 ^= 0xff;
    sip_round(&s);
    sip_round(&s);
    sip_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

/* Each step can be undone, so a sum forgets nothing of the last word. */
static uint64_t quick_word(uint64_t sum, uint64_t word)
{
    return rotate_left((sum ^ word) * 0x9e3779b97f4a7c15u, 29);
}

/* Four sums side by side: none waits for the multiplication of another. */
uint64_t hash_quick(uint64_t key, struct slice data)
{
    uint64_t sums[] = { key, key + 1, key + 2, key + 3 };
    enum { SUMS = sizeof sums / sizeof *sums, STRIPE = 8 * SUMS };
    const unsigned char *bytes = (const unsigned char *)(data.data ? data.data : "");
    uint64_t hash = quick_word(key, data.len);
    size_t i = 0;
    for (; data.len - i >= STRIPE; i += STRIPE)
        for (size_t k = 0; k < SUMS; k++)
            sums[k] = quick_word(sums[k], load_eight(bytes + i + 8 * k));
    for (size_t k = 0; k < SUMS && data.len >= STRIPE; k++)
        hash = quick_word(hash, sums[k]);
    for (; data.len - i >= 8; i += 8)
        hash = quick_word(hash, load_eight(bytes + i));
    hash = quick_word(hash, load_word(bytes + i, data.len - i));
    return quick_word(hash ^ hash >> 32, 0);
}
