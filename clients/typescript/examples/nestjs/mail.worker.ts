import { Inject, Injectable, Logger, type OnApplicationShutdown, type OnModuleInit } from "@nestjs/common";
import { Insist, Permanent, Worker, type LeasedJob } from "insist-client";

/** What was `@Processor("mail")`: works from the start of the application to its end. */
@Injectable()
export class MailWorker implements OnModuleInit, OnApplicationShutdown {
  private readonly log = new Logger(MailWorker.name);
  private readonly worker: Worker;
  private running: Promise<void> | undefined;
  readonly sent: string[] = [];

  constructor(@Inject(Insist) insist: Insist) {
    this.worker = new Worker(insist, "mail", (job) => this.handle(job), { concurrency: 8, onError: (message, error) => this.log.warn(`${message}: ${error}`) });
  }

  onModuleInit(): void {
    this.running = this.worker.run().catch((error) => this.log.error(`the worker has ended: ${error}`));
  }

  async onApplicationShutdown(): Promise<void> {
    this.worker.stop();
    await this.running;
  }

  private async handle(job: LeasedJob): Promise<void> {
    const mail = job.json<{ to: string[]; subject: string }>();
    if (!mail.to?.length) throw new Permanent("a message without a recipient", { code: "NO_RECIPIENT" });
    this.sent.push(job.id);
  }
}
