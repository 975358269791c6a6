#include "core/decision/policy.h"

#include "base/json.h"

const char *policy_id_problem(const struct policy *policy, struct slice id)
{
    if (slice_is_blank(id))
        return "the id is missing or blank";
    if (id.len > JOB_ID_BYTES_MAX)
        return "the id is longer than 255 bytes";
    for (size_t i = 0; i < id.len; i++)
        if ((unsigned char)id.data[i] < ' ' || id.data[i] == 0x7f)
            return "the id has a control character";
    if (!utf8_is_valid(id))
        return "the id is not UTF-8";
    if (policy->id_pattern && !pattern_matches_whole(policy->id_pattern, id))
        return "the id does not have the form that the policy's id_pattern asks";
    return NULL;
}
