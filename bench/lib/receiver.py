"""Where bench/*.py let jobs be delivered to: a process of its own, so that who measures does not wait for it in Python."""
import asyncio
import json
import multiprocessing
import time


class Receiver:
    """Answers 200 as `answer(payload)` says: after how many seconds, and with what. Keeps when each payload's `id` came first."""

    def __init__(self, answer):
        self.answer, self.came = answer, {}
        self.count = multiprocessing.Value("q", 0)
        self.pipe, self.inner = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=lambda: asyncio.run(self.listen()), daemon=True)
        self.process.start()
        self.port = self.pipe.recv()

    async def listen(self):
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        asyncio.get_running_loop().add_reader(self.inner.fileno(), lambda: self.inner.send(self.inner.recv() or self.came))
        self.inner.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    async def serve(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                length = next(int(line[15:]) for line in head.split("\r\n") if line.startswith("content-length:"))
                payload = json.loads(await reader.readexactly(length))
                self.came.setdefault(payload["id"], time.monotonic())
                self.count.value += 1
                seconds, body = self.answer(payload)
                if seconds:
                    await asyncio.sleep(seconds)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def arrivals(self):
        """When each came, by time.monotonic()."""
        self.pipe.send(None)
        return self.pipe.recv()

    def end(self):
        self.process.kill()
        self.process.join()
