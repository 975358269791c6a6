#!/usr/bin/env python3
"""Asks a preset what to do about an error, through the C library.

    python3 decide.py /usr/local/lib/libinsist.so tiss CLM-2025-001 'TIMEOUT - Connection timeout after 30s' 1

Questions and answers are JSON, so that only a few plain C types cross the border.
"""
import ctypes
import json
import sys
import time


class Policy:
    """A loaded preset. May be asked by many threads at once."""

    def __init__(self, library, preset):
        self.lib = ctypes.CDLL(library)
        self.lib.insist_policy_from_preset.argtypes = [
            ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_char_p, ctypes.c_size_t]
        self.lib.insist_decide_json.argtypes = [
            ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int64,
            ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t)]
        self.lib.insist_status_text.restype = ctypes.c_char_p
        self.lib.insist_text_free.argtypes = [ctypes.c_void_p]
        self.lib.insist_policy_free.argtypes = [ctypes.c_void_p]

        self.handle = ctypes.c_void_p()
        message = ctypes.create_string_buffer(512)
        if self.lib.insist_policy_from_preset(preset.encode(), ctypes.byref(self.handle), message, len(message)) != 0:
            raise ValueError(message.value.decode(errors="replace"))

    def close(self):
        self.lib.insist_policy_free(self.handle)
        self.handle = None

    def decide(self, **question):
        """The answer as a dict; one with the member `error` when the question is wrong."""
        text = json.dumps(question).encode()
        answer, length = ctypes.c_void_p(), ctypes.c_size_t()
        now_ms = int(time.time() * 1000)
        status = self.lib.insist_decide_json(self.handle, text, len(text), now_ms, ctypes.byref(answer), ctypes.byref(length))
        if status != 0:
            raise RuntimeError(self.lib.insist_status_text(status).decode())
        try:
            return json.loads(ctypes.string_at(answer, length.value))
        finally:
            self.lib.insist_text_free(answer)


def main(arguments):
    if len(arguments) != 5:
        print("usage: decide.py LIBRARY PRESET ID ERROR RETRY_COUNT", file=sys.stderr)
        return 2
    library, preset, job, error, retry_count = arguments
    try:
        policy = Policy(library, preset)
    except ValueError as problem:
        print(problem, file=sys.stderr)
        return 2
    answer = policy.decide(id=job, submissionError=error, retryCount=int(retry_count))
    policy.close()
    print(json.dumps(answer, ensure_ascii=False))
    return 2 if "error" in answer else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
