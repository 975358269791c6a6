import "reflect-metadata";
import { Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { InsistModule } from "./insist.module.js";
import { MailService } from "./mail.service.js";
import { MailWorker } from "./mail.worker.js";

@Module({ imports: [InsistModule], providers: [MailService, MailWorker] })
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: ["error", "warn"] });
app.enableShutdownHooks(); // SIGTERM: no more work is taken, and what is under way ends
await app.get(MailService).send("welcome-1", "acme", { to: ["ana@example.org"], subject: "Welcome", text: "Hello" });
console.log("working; stop with Ctrl-C");
const worker = app.get(MailWorker);
const seen = setInterval(() => {
  if (worker.sent.length) console.log(`sent ${worker.sent.splice(0).join(" ")}`);
}, 200);
process.once("beforeExit", () => clearInterval(seen));
