/*
 * The process and its files, as the system knows them. What cannot be read is left out.
 */
#include "api/call/shared.h"
#include "api/observe/metrics.h"
#include "store/inspect.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { STAT_BYTES_MAX = 1024 };

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

double metrics_process_cpu(UNUSED const struct metrics_scene *scene)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime) : NAN;
}

/* Numbers of /proc/self/stat behind the program's name: vsize, rss in pages, start in ticks since boot. */
struct process_stat {
    unsigned long long start, virtual_bytes;
    long long resident_pages;
};

static bool read_stat(struct process_stat *ret)
{
    char text[STAT_BYTES_MAX];
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (len <= 0)
        return false;
    text[len] = '\0';
    const char *rest = strrchr(text, ')'); /* the name may hold anything */
    return rest && sscanf(rest + 1,
                          " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d"
                          " %llu %llu %lld",
                          &ret->start, &ret->virtual_bytes, &ret->resident_pages) == 3;
}

double metrics_process_resident(UNUSED const struct metrics_scene *scene)
{
    struct process_stat stat;
    return read_stat(&stat) ? (double)stat.resident_pages * (double)sysconf(_SC_PAGESIZE) : NAN;
}

double metrics_process_virtual(UNUSED const struct metrics_scene *scene)
{
    struct process_stat stat;
    return read_stat(&stat) ? (double)stat.virtual_bytes : NAN;
}

double metrics_process_start(UNUSED const struct metrics_scene *scene)
{
    struct process_stat stat;
    struct timespec since_boot, now;
    if (!read_stat(&stat) || clock_gettime(CLOCK_BOOTTIME, &since_boot) != 0 || clock_gettime(CLOCK_REALTIME, &now) != 0)
        return NAN;
    double boot = (double)now.tv_sec - (double)since_boot.tv_sec + (double)(now.tv_nsec - since_boot.tv_nsec) / 1e9;
    double start = boot + (double)stat.start / (double)sysconf(_SC_CLK_TCK);
    return (double)(int64_t)(start * 100) / 100; /* the system tells it in hundredths */
}

double metrics_process_fds(UNUSED const struct metrics_scene *scene)
{
    int64_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (!folder)
        return NAN;
    for (const struct dirent *entry; (entry = readdir(folder));)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return (double)(count - 1); /* without the one that looked */
}

double metrics_process_max_fds(UNUSED const struct metrics_scene *scene)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (double)limit.rlim_cur : NAN;
}

static struct store_space space_of(const struct metrics_scene *scene)
{
    struct store_space space;
    if (store_space(scene->api->settings.store, &space, NULL) != STATUS_OK)
        space.free_bytes = -1;
    return space;
}

static double known(int64_t bytes)
{
    return bytes >= 0 ? (double)bytes : NAN;
}

double metrics_store_bytes(const struct metrics_scene *scene)
{
    return known(space_of(scene).bytes);
}

double metrics_store_wal_bytes(const struct metrics_scene *scene)
{
    return known(space_of(scene).log_bytes);
}

double metrics_disk_free(const struct metrics_scene *scene)
{
    return known(space_of(scene).free_bytes);
}
