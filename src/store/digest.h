/*
 * digest.h - what a job was when it was written, so that one that was changed on disk is not sent.
 *
 * It begins with the digest that OP_INSERT compares with, which stays whatever comes. Behind it stands a hash of what is to
 * be sent now, which a corrected payload changes: a quick one, since every claim makes it again, and all it must find is
 * damage. A store that has no use for the first may have a quicker one alone.
 */
#ifndef STORE_DIGEST_H
#define STORE_DIGEST_H

#include "store/store.h"

enum { JOB_DIGEST_BYTES = 16, JOB_CHECK_BYTES = 8, JOB_DIGEST_BYTES_MAX = JOB_DIGEST_BYTES + JOB_CHECK_BYTES };

void job_digest_make(const struct op_insert *insert, unsigned char ret_digest[JOB_DIGEST_BYTES_MAX]);
/* Of destination, content type, headers and payload: the second part of it, and what may stand alone. */
void job_check_make(const struct job *job, unsigned char ret_check[JOB_CHECK_BYTES]);
void job_check_alone(const struct job *job, unsigned char ret_check[JOB_CHECK_BYTES]);
/* What has stood alone becomes whole. What was damaged stays so. */
void job_digest_complete(const struct op_insert *stored, const unsigned char alone[JOB_CHECK_BYTES],
                         unsigned char ret_digest[JOB_DIGEST_BYTES_MAX]);
/* What is checked of that job. */
struct job job_of_insert(const struct op_insert *insert);
/* Whether the job, with its payload, is another than what was written. */
bool job_check_differs(const struct job *job, const unsigned char check[JOB_CHECK_BYTES]);

#endif
