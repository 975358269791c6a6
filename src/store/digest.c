#include "store/digest.h"

#include "base/hash.h"

#include <assert.h>
#include <string.h>

/* The same on every machine and in every version: it is stored. */
static void check_make(const struct job *job, bool alone, unsigned char ret_check[JOB_CHECK_BYTES])
{
    assert(job->destination.len > 0);
    const struct slice texts[] = { job->destination, job->content_type, job->headers, job->payload };
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        hash = alone ? hash_quick(hash + i, texts[i]) : hash_slice(hash, i, texts[i]);
    for (int i = 0; i < JOB_CHECK_BYTES; i++)
        ret_check[i] = (unsigned char)(hash >> (8 * i));
}

void job_check_make(const struct job *job, unsigned char ret_check[JOB_CHECK_BYTES])
{
    check_make(job, false, ret_check);
}

void job_check_alone(const struct job *job, unsigned char ret_check[JOB_CHECK_BYTES])
{
    check_make(job, true, ret_check);
}

struct job job_of_insert(const struct op_insert *insert)
{
    return (struct job){ .destination = insert->destination,
                         .content_type = insert->content_type,
                         .headers = insert->headers,
                         .payload = insert->payload };
}

void job_digest_make(const struct op_insert *insert, unsigned char ret_digest[JOB_DIGEST_BYTES_MAX])
{
    const struct job job = job_of_insert(insert);
    job_digest(insert, ret_digest);
    job_check_make(&job, ret_digest + JOB_DIGEST_BYTES);
}

void job_digest_complete(const struct op_insert *stored, const unsigned char alone[JOB_CHECK_BYTES],
                         unsigned char ret_digest[JOB_DIGEST_BYTES_MAX])
{
    const struct job job = job_of_insert(stored);
    unsigned char check[JOB_CHECK_BYTES];
    job_check_alone(&job, check);
    bool damaged = memcmp(check, alone, sizeof check) != 0;
    job_digest_make(stored, ret_digest);
    if (damaged)
        ret_digest[JOB_DIGEST_BYTES] ^= 0xff;
}

bool job_check_differs(const struct job *job, const unsigned char check[JOB_CHECK_BYTES])
{
    assert(job->payload.len == 0 || job->payload.data);
    unsigned char now[JOB_CHECK_BYTES];
    job_check_make(job, now);
    return memcmp(now, check, sizeof now) != 0;
}
