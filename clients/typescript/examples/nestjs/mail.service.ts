import { Inject, Injectable } from "@nestjs/common";
import { Insist, type Accepted } from "insist-client";

/** What was `queue.add("send", mail)`: the job is on disk when the promise is kept. */
@Injectable()
export class MailService {
  constructor(@Inject(Insist) private readonly insist: Insist) {}

  send(messageId: string, tenant: string, mail: { to: string[]; subject: string; text: string }): Promise<Accepted> {
    return this.insist.enqueue({ destination: "mail", id: messageId, tenant, payload: mail });
  }
}
