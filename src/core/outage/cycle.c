#include "core/outage/cycle.h"

#include <assert.h>

static struct cycle_run *run_of(struct cycles *cycles, uint32_t number)
{
    assert(number > 0);
    return cycles->present.figures.number == number ? &cycles->present
           : cycles->before.figures.number == number ? &cycles->before
                                                     : NULL;
}

void cycle_selected(struct cycles *cycles, uint32_t number, int64_t count, int64_t age_sum_ms, instant now)
{
    assert(count > 0);
    struct cycle_run *run = run_of(cycles, number);
    if (!run) { /* cycle_tell has been called since the one before the present ended: nothing untold is lost */
        cycles->before = cycles->present;
        cycles->before.over = true;
        cycles->present = (struct cycle_run){ .figures = { .number = number, .began_at = now, .ended_at = now } };
        run = &cycles->present;
    }
    run->figures.selected += count;
    run->age_sum_ms += age_sum_ms > 0 ? age_sum_ms : 0;
    run->figures.age_ms = run->age_sum_ms / run->figures.selected;
}

void cycle_answered(struct cycles *cycles, uint32_t number, enum cycle_answer answer, instant now)
{
    struct cycle_run *run = run_of(cycles, number);
    if (!run || run->figures.answered == run->figures.selected)
        return;
    struct cycle_figures *figures = &run->figures;
    figures->answered++;
    figures->succeeded += answer == CYCLE_SUCCEEDED;
    figures->failed += answer == CYCLE_RESCHEDULED || answer == CYCLE_FAILED;
    figures->rescheduled += answer == CYCLE_RESCHEDULED || answer == CYCLE_HELD;
    if (now > figures->ended_at)
        figures->ended_at = now;
}

void cycle_returned(struct cycles *cycles, uint32_t number)
{
    struct cycle_run *run = run_of(cycles, number);
    if (!run || run->figures.answered == run->figures.selected)
        return;
    run->figures.selected--;
}

void cycle_ended(struct cycles *cycles, uint32_t number)
{
    if (cycles->present.figures.number == number)
        cycles->present.over = true;
}

static bool tell(struct cycles *cycles, struct cycle_run *run)
{
    assert(run->figures.answered <= run->figures.selected);
    bool selected = run->figures.selected > 0;
    if (selected)
        cycles->last = run->figures;
    *run = (struct cycle_run){ 0 };
    return selected;
}

static bool is_complete(const struct cycle_run *run)
{
    assert(run->figures.answered <= run->figures.selected);
    return run->figures.number > 0 && run->over && run->figures.answered == run->figures.selected;
}

bool cycle_tell(struct cycles *cycles)
{
    if (cycles->before.figures.number > 0 && (is_complete(&cycles->before) || cycles->present.over) &&
        tell(cycles, &cycles->before))
        return true;
    return is_complete(&cycles->present) && tell(cycles, &cycles->present);
}

int64_t cycle_took_ms(const struct cycle_figures *figures)
{
    assert(figures->ended_at >= figures->began_at);
    return figures->ended_at - figures->began_at;
}
