#include "support/scarce.h"

#include "core/decision/token_index.c"
#include "support/check.h"

enum { HITS_MAX = 4096 };

struct hits {
    size_t count;
    struct { size_t value, end; } items[HITS_MAX];
};

static void on_hit(void *context, size_t value, size_t end)
{
    struct hits *hits = context;
    assert_true(hits->count < HITS_MAX);
    hits->items[hits->count].value = value;
    hits->items[hits->count++].end = end;
}

static bool has_hit(const struct hits *hits, size_t value, size_t end)
{
    for (size_t i = 0; i < hits->count; i++)
        if (hits->items[i].value == value && hits->items[i].end == end)
            return true;
    return false;
}

static struct token_index *index_of(const char *const *tokens, size_t count)
{
    struct token_index *index = NULL;
    size_t first;
    assert_int_equal(token_index_new(&index), STATUS_OK);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(token_index_add(index, slice_from(tokens[i]), i, &first), STATUS_OK);
    assert_int_equal(token_index_finish(index), STATUS_OK);
    return index;
}

static void tokens_inside_tokens_are_all_found(void **state)
{
    (void)state;
    static const char *const tokens[] = { "she", "he", "hers", "his", "e", "sherlock", "er", "\xc3\xb3n" };
    struct token_index *index = index_of(tokens, COUNT_OF(tokens));
    struct hits hits = { 0 };
    token_index_search(index, SLICE("uSHErs operaci\xc3\xb3n"), on_hit, &hits);
    static const struct { size_t value, end; } expected[] = {
        { 0, 4 }, { 1, 4 }, { 4, 4 }, { 6, 5 }, { 2, 6 }, { 4, 10 }, { 6, 11 }, { 7, 17 },
    };
    for (size_t i = 0; i < COUNT_OF(expected); i++)
        check(has_hit(&hits, expected[i].value, expected[i].end), "%s at %zu", tokens[expected[i].value], expected[i].end);
    assert_int_equal(hits.count, COUNT_OF(expected));
    hits.count = 0;
    token_index_search(index, (struct slice){ NULL, 0 }, on_hit, &hits);
    assert_int_equal(hits.count, 0);
    token_index_free(index);
    token_index_free(NULL);
}

static void of_equal_tokens_the_first_stays(void **state)
{
    (void)state;
    struct token_index *index = NULL;
    struct hits hits = { 0 };
    assert_int_equal(token_index_new(&index), STATUS_OK);
    for (size_t i = 2; i < 5; i++) {
        size_t first = 0;
        assert_int_equal(token_index_add(index, SLICE("abc"), i, &first), STATUS_OK);
        assert_int_equal(first, 2);
    }
    assert_int_equal(token_index_finish(index), STATUS_OK);
    token_index_search(index, SLICE("ABC"), on_hit, &hits);
    assert_int_equal(hits.count, 1);
    assert_int_equal(hits.items[0].value, 2);
    token_index_free(index);
}

static void all_bytes_can_be_tokens(void **state)
{
    (void)state;
    struct token_index *index = NULL;
    assert_int_equal(token_index_new(&index), STATUS_OK);
    for (int byte = 0; byte < 256; byte++) {
        size_t first;
        char c = (char)byte;
        if (c == ascii_lower(c))
            assert_int_equal(token_index_add(index, (struct slice){ &c, 1 }, (size_t)byte, &first), STATUS_OK);
    }
    assert_int_equal(token_index_finish(index), STATUS_OK);
    for (int byte = 0; byte < 256; byte++) {
        char c = (char)byte;
        struct hits hits = { 0 };
        token_index_search(index, (struct slice){ &c, 1 }, on_hit, &hits);
        check(hits.count == 1 && hits.items[0].value == (unsigned char)ascii_lower(c), "byte %d", byte);
    }
    token_index_free(index);
}

/* Few letters and short tokens: each is likely to be a prefix, a suffix or a middle of others. */
static void it_agrees_with_searching_each_token(void **state)
{
    (void)state;
    enum { ROUNDS = 400, TOKENS = 25, TOKEN_MAX = 6, TEXT = 200 };
    struct random random = { 2024 };
    for (int round = 0; round < ROUNDS; round++) {
        char tokens[TOKENS][TOKEN_MAX + 1];
        size_t letters = 1 + random_below(&random, 4);
        struct token_index *index = NULL;
        assert_int_equal(token_index_new(&index), STATUS_OK);
        for (size_t t = 0; t < TOKENS; t++) {
            size_t first;
            size_t len = 1 + random_below(&random, TOKEN_MAX);
            for (size_t i = 0; i < len; i++)
                tokens[t][i] = (char)('a' + random_below(&random, letters));
            tokens[t][len] = '\0';
            assert_int_equal(token_index_add(index, slice_from(tokens[t]), t, &first), STATUS_OK);
        }
        assert_int_equal(token_index_finish(index), STATUS_OK);
        char text[TEXT];
        for (size_t i = 0; i < TEXT; i++) {
            char letter = (char)('a' + random_below(&random, letters + 1));
            text[i] = random_below(&random, 2) ? letter : (char)(letter - 32);
        }
        static struct hits hits;
        hits.count = 0;
        token_index_search(index, (struct slice){ text, TEXT }, on_hit, &hits);
        size_t expected = 0;
        for (size_t t = 0; t < TOKENS; t++) {
            bool repeated = false;
            for (size_t u = 0; u < t; u++)
                repeated = repeated || strcmp(tokens[u], tokens[t]) == 0;
            if (repeated)
                continue;
            struct slice token = slice_from(tokens[t]);
            for (size_t i = 0; i + token.len <= TEXT; i++)
                if (slice_equal_nocase((struct slice){ text + i, token.len }, token)) {
                    check(has_hit(&hits, t, i + token.len), "round %d: %s at %zu", round, tokens[t], i);
                    expected++;
                }
        }
        check(hits.count == expected, "round %d: %zu hits, %zu expected", round, hits.count, expected);
        token_index_free(index);
    }
}

static void too_many_letters_are_refused(void **state)
{
    (void)state;
    struct token_index *index = NULL;
    struct random random = { 8 };
    enum status status = STATUS_OK;
    size_t added = 0;
    assert_int_equal(token_index_new(&index), STATUS_OK);
    for (; status == STATUS_OK && added < TOKEN_STATES_MAX; added++) {
        size_t first;
        char token[64];
        for (size_t i = 0; i < sizeof token; i++)
            token[i] = (char)('a' + random_below(&random, 26));
        status = token_index_add(index, (struct slice){ token, sizeof token }, added, &first);
    }
    assert_int_equal(status, STATUS_LIMIT);
    assert_true(added > TOKEN_STATES_MAX / 64);
    token_index_free(index);
}

static void memory_may_run_out_at_any_point(void **state)
{
    (void)state;
    bool finished = false;
    for (long allowed = 0; !finished; allowed++) {
        struct token_index *index = NULL;
        scarce_left = allowed;
        enum status status = token_index_new(&index);
        for (int i = 0; status == STATUS_OK && i < 40; i++) {
            size_t first;
            const char token[] = { (char)('a' + i % 26), 'x', (char)('a' + i / 26), 'y', 'z' };
            status = token_index_add(index, (struct slice){ token, sizeof token }, 0, &first);
        }
        if (status == STATUS_OK)
            status = token_index_finish(index);
        scarce_left = -1;
        finished = status == STATUS_OK;
        check(finished || status == STATUS_NO_MEMORY, "%ld allocations", allowed);
        check(allowed > 3 || !finished, "%ld allocations", allowed);
        token_index_free(index);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_inside_tokens_are_all_found),
        cmocka_unit_test(of_equal_tokens_the_first_stays),
        cmocka_unit_test(all_bytes_can_be_tokens),
        cmocka_unit_test(it_agrees_with_searching_each_token),
        cmocka_unit_test(too_many_letters_are_refused),
        cmocka_unit_test(memory_may_run_out_at_any_point),
    };
    return cmocka_run_group_tests_name("token_index", tests, NULL, NULL);
}
