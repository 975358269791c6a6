/*
 * jobs.h - the calls about jobs: taking them, looking at them, acting on them, leasing them.
 */
#ifndef API_JOBS_JOBS_H
#define API_JOBS_JOBS_H

#include "api/call/shared.h"

void handle_dead_export(struct call *call);
void handle_dead_summary(struct call *call);
void handle_jobs_post(struct call *call);
void handle_jobs_batch(struct call *call);
void handle_jobs_list(struct call *call);
void handle_job_get(struct call *call);
void handle_job_why(struct call *call);
void handle_job_retry(struct call *call);
void handle_job_resend(struct call *call);
void handle_job_cancel(struct call *call);
void handle_job_patch(struct call *call);
void handle_dead_list(struct call *call);
void handle_dead_delete(struct call *call);
void handle_dead_purge(struct call *call);
void handle_redrives_post(struct call *call);
void handle_redrives_list(struct call *call);
void handle_redrive_get(struct call *call);
void handle_redrive_cancel(struct call *call);
void handle_redrive_undo(struct call *call);
void handle_subject_get(struct call *call);
void handle_subject_delete(struct call *call);
void handle_erasures_list(struct call *call);
void handle_erasure_get(struct call *call);
void handle_leases_post(struct call *call);
void handle_leases_ack(struct call *call);
void handle_leases_nack(struct call *call);
void handle_leases_extend(struct call *call);
void handle_decide(struct call *call);

#endif
