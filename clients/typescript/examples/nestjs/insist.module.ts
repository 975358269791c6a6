import { Global, Module } from "@nestjs/common";
import { Insist } from "insist-client";

/** One client for the whole application; INSIST_SERVER and INSIST_TOKEN say where. */
@Global()
@Module({ providers: [{ provide: Insist, useFactory: () => new Insist() }], exports: [Insist] })
export class InsistModule {}
