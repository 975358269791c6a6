"""insist: give it work, take work from it, verify what it sends.

    import insist

    client = insist.Client()                                   # INSIST_SERVER, INSIST_TOKEN
    client.enqueue("claims", {"guide": 77}, id="CLM-2025-000123", tenant="hospital-a")

    insist.Worker(client, "labels", print_label).run()         # until SIGTERM

    insist.verify_webhook("whsec_…", request.headers, request.body)
"""
from .client import Client, BatchResult, InsistError, Job, Problem, Rejected, Unreachable
from .webhook import InvalidSignature, verify_webhook
from .worker import LeasedJob, Permanent, Transient, Worker

__version__ = "0.1.0"
__all__ = ["BatchResult", "Client", "InsistError", "InvalidSignature", "Job", "LeasedJob", "Permanent", "Problem", "Rejected", "Transient",
           "Unreachable", "Worker", "verify_webhook"]
