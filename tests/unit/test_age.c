/*
 * The mean age of jobs, followed from counts, against one that knows each job.
 */
#include "core/alerting/age.h"
#include "support/check.h"

enum { JOBS_MAX = 20000 };

static const instant began = INT64_C(1736678400000);

struct queue {
    instant created[JOBS_MAX];
    size_t count;
};

static double mean_age(const struct queue *queue, instant now)
{
    double sum = 0;
    for (size_t i = 0; i < queue->count; i++)
        sum += (double)(now - queue->created[i]);
    return queue->count > 0 ? sum / (double)queue->count : 0;
}

static instant take(struct queue *queue, size_t index)
{
    instant created = queue->created[index];
    queue->count--;
    for (size_t i = index; i < queue->count; i++)
        queue->created[i] = queue->created[i + 1];
    return created;
}

/* Ten seconds at a time: some come, some are done (known, the oldest first), some are cancelled (unknown, any). */
static void follows_a_queue(void **state)
{
    static const struct {
        const char *name;
        size_t comes, done, cancelled, steps;
        double off_max; /* share of the true mean */
    } rows[] = {
        { "steady", 20, 20, 0, 300, 0.02 },     { "grows", 30, 10, 0, 300, 0.02 },
        { "nothing goes", 20, 0, 0, 300, 0.02 }, { "drains", 0, 7, 0, 100, 0.02 },
        { "cancels", 20, 10, 8, 300, 0.15 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        static struct queue queue;
        struct random random = { 7 };
        struct backlog_age age = backlog_age_none();
        instant now = began;
        queue.count = 0;
        for (int j = 0; j < 1000; j++)
            queue.created[queue.count++] = now;
        backlog_age_feed(&age, &(struct backlog_flow){ .count = 1000 }, now);
        for (size_t step = 0; step < rows[i].steps; step++) {
            struct backlog_flow flow = { 0 };
            for (size_t j = 0; j < rows[i].comes; j++)
                queue.created[queue.count++] = now + (instant)random_below(&random, 10000);
            for (size_t j = 0; j < rows[i].done; j++, flow.left_known++, flow.left++)
                flow.left_created += (double)take(&queue, 0);
            for (size_t j = 0; j < rows[i].cancelled; j++, flow.left++)
                take(&queue, random_below(&random, queue.count));
            now += 10000;
            flow.count = (int64_t)queue.count;
            backlog_age_feed(&age, &flow, now);
        }
        double is = mean_age(&queue, now), found = (double)backlog_age_ms(&age, now);
        check(found > is * (1 - rows[i].off_max) - 1000 && found < is * (1 + rows[i].off_max) + 1000, "%s: %.0f ms, %.0f ms found",
              rows[i].name, is, found);
    }
}

static void odd_figures_stay_sane(void **state)
{
    struct backlog_age age = backlog_age_none();
    (void)state;
    assert_int_equal(backlog_age_ms(&age, began), 0);
    backlog_age_feed(&age, &(struct backlog_flow){ .count = 0, .left = 5, .left_known = 5, .left_created = 5.0 * (double)began }, began);
    assert_int_equal(backlog_age_ms(&age, began), 0);
    backlog_age_feed(&age, &(struct backlog_flow){ .count = 10 }, began);
    assert_int_equal(backlog_age_ms(&age, began + MINUTE_MS), MINUTE_MS);
    backlog_age_feed(&age, &(struct backlog_flow){ .count = 3, .left_known = 100 }, began + MINUTE_MS); /* absurd: they came in 1970 */
    assert_true(backlog_age_ms(&age, began + MINUTE_MS) >= 0);
    backlog_age_feed(&age, &(struct backlog_flow){ .count = 3 }, began - HOUR_MS); /* the clock was put back */
    assert_true(backlog_age_ms(&age, began - HOUR_MS) == 0);
    assert_int_equal(age.count, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_a_queue),
        cmocka_unit_test(odd_figures_stay_sane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
