#include "base/hash.h"
#include "support/check.h"

#include <string.h>

/* SipHash-1-3 of the bytes 0, 1, 2... under the key 00..0f, from an implementation of another hand. */
static void reference_values(void **state)
{
    (void)state;
    static const struct { size_t len; uint64_t hash; } rows[] = {
        { 0, UINT64_C(0xabac0158050fc4dc) }, { 1, UINT64_C(0xc9f49bf37d57ca93) }, { 2, UINT64_C(0x82cb9b024dc7d44d) }, { 3, UINT64_C(0x8bf80ab8e7ddf7fb) },
        { 4, UINT64_C(0xcf75576088d38328) }, { 5, UINT64_C(0xdef9d52f49533b67) }, { 6, UINT64_C(0xc50d2b50c59f22a7) }, { 7, UINT64_C(0xd3927d989bb11140) },
        { 8, UINT64_C(0x369095118d299a8e) }, { 9, UINT64_C(0x25a48eb36c063de4) }, { 15, UINT64_C(0xd320d86d2a519956) }, { 16, UINT64_C(0xcc4fdd1a7d908b66) },
        { 17, UINT64_C(0x9cf2689063dbd80c) }, { 63, UINT64_C(0x9d199062b7bbb3a8) }, { 64, UINT64_C(0xf17997ec4b4a6065) }, { 255, UINT64_C(0xf76214e3153c4a15) },
        { 256, UINT64_C(0x75b3e64e167de370) }, { 300, UINT64_C(0x4016a23bda5a2224) },
    };
    char bytes[300];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(unsigned char)i;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint64_t hash = hash_slice(UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908), (struct slice){ bytes, rows[i].len });
        check(hash == rows[i].hash, "%zu bytes: %016llx", rows[i].len, (unsigned long long)hash);
    }
}

/* Under the key of zeros the values are those of CPython's hash() with PYTHONHASHSEED=0. */
static void values_of_another_program(void **state)
{
    (void)state;
    assert_true(hash_slice(0, 0, SLICE("a")) == UINT64_C(0x407448d2b89b1813));
    assert_true(hash_slice(0, 0, SLICE("CLM-2025-001")) == UINT64_C(0x3a00a8d6c44794ce));
    assert_true(hash_slice(0, 0, SLICE("12345678")) == UINT64_C(0x3489982430560a87));
}

static void keys_lengths_and_missing_data_count(void **state)
{
    (void)state;
    assert_true(hash_slice(0, 0, SLICE("a")) != hash_slice(1, 0, SLICE("a")));
    assert_true(hash_slice(0, 0, SLICE("a")) != hash_slice(0, 1, SLICE("a")));
    assert_true(hash_slice(0, 0, SLICE("a")) != hash_slice(0, 0, SLICE("a\0")));
    assert_true(hash_slice(0, 0, SLICE("")) != hash_slice(0, 0, SLICE("\0")));
    assert_true(hash_slice(0, 0, (struct slice){ NULL, 0 }) == hash_slice(0, 0, SLICE("")));
}

/* They are stored: the same in every version. */
static void quick_values_stay(void **state)
{
    static const struct { size_t len; uint64_t hash; } rows[] = {
        { 0, UINT64_C(0x0a930ea9e24672c2) }, { 1, UINT64_C(0xe9586e703aa26755) }, { 8, UINT64_C(0xccec98f7d0950993) },
        { 31, UINT64_C(0x5661a77ac91b21ae) }, { 32, UINT64_C(0x671a6bcca513572b) }, { 33, UINT64_C(0x3a87be2825db2108) },
        { 64, UINT64_C(0x24a1af6c9f47b9e6) }, { 100, UINT64_C(0x45eb9c2db91f69b6) },
    };
    char bytes[100];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t hash = hash_quick(5, (struct slice){ bytes, rows[i].len });
        check(hash == rows[i].hash, "%zu bytes: %016llx", rows[i].len, (unsigned long long)hash);
    }
}

/* A bit, a byte less, another key, two words in each other's place: all of it shows. */
static void quick_values_differ(void **state)
{
    char bytes[140], changed[sizeof bytes];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 11);
    for (size_t len = 0; len < sizeof bytes; len++) {
        uint64_t hash = hash_quick(0, (struct slice){ bytes, len });
        assert_true(hash != hash_quick(1, (struct slice){ bytes, len }) && hash != hash_quick(0, (struct slice){ bytes, len + 1 }));
        for (size_t bit = 0; bit < 8 * len; bit++) {
            memcpy(changed, bytes, len);
            changed[bit / 8] ^= (char)(1 << bit % 8);
            check(hash != hash_quick(0, (struct slice){ changed, len }), "bit %zu of %zu bytes", bit, len);
        }
        for (size_t i = 8; i + 8 <= len; i += 8) {
            memcpy(changed, bytes, len);
            memcpy(changed, bytes + i, 8);
            memcpy(changed + i, bytes, 8);
            check(hash != hash_quick(0, (struct slice){ changed, len }), "words at 0 and %zu of %zu bytes", i, len);
        }
    }
    assert_true(hash_quick(0, (struct slice){ NULL, 0 }) == hash_quick(0, SLICE("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_values),
        cmocka_unit_test(values_of_another_program),
        cmocka_unit_test(keys_lengths_and_missing_data_count),
        cmocka_unit_test(quick_values_stay),
        cmocka_unit_test(quick_values_differ),
    };
    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
