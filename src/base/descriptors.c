#include "base/descriptors.h"

#include <sys/resource.h>

struct descriptors descriptors_share(int64_t limit, int64_t clients_wanted)
{
    int64_t saved = limit / 2 < DESCRIPTORS_RESERVED ? limit / 2 : DESCRIPTORS_RESERVED;
    int64_t rest = limit - saved;
    struct descriptors share = { .clients = rest / 2 < clients_wanted ? rest / 2 : clients_wanted };
    if (share.clients < 1)
        share.clients = 1;
    share.sends = rest - share.clients > 1 ? rest - share.clients : 1;
    return share;
}

int64_t descriptors_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > INT64_MAX)
        return INT64_MAX;
    return (int64_t)limit.rlim_cur;
}
