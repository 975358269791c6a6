#include "store/digest.h"

#include "base/hash.h"

#include <assert.h>
#include <string.h>

/* The same on every machine and in every version: it is stored. */
void job_check_make(const struct job *job, unsigned char ret_check[JOB_CHECK_BYTES])
{
    assert(job->destination.len > 0);
    const struct slice texts[] = { job->destination, job->content_type, job->headers, job->payload };
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        hash = hash_slice(hash, i, texts[i]);
    for (int i = 0; i < JOB_CHECK_BYTES; i++)
        ret_check[i] = (unsigned char)(hash >> (8 * i));
}

void job_digest_make(const struct op_insert *insert, unsigned char ret_digest[JOB_DIGEST_BYTES_MAX])
{
    const struct job job = { .destination = insert->destination,
                             .content_type = insert->content_type,
                             .headers = insert->headers,
                             .payload = insert->payload };
    job_digest(insert, ret_digest);
    job_check_make(&job, ret_digest + JOB_DIGEST_BYTES);
}

bool job_check_differs(const struct job *job, const unsigned char digest[JOB_DIGEST_BYTES_MAX])
{
    unsigned char check[JOB_CHECK_BYTES];
    job_check_make(job, check);
    return memcmp(check, digest + JOB_DIGEST_BYTES, sizeof check) != 0;
}
