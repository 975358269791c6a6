/*
 * What a person may do, each with a question first.
 */
"use strict";

const dialog = $("confirm");
let confirmed = null; // what to do, given the reason

function confirmThat({ title, text, button, reason, run }) {
  set($("confirm-title"), title);
  set($("confirm-text"), text);
  set($("confirm-yes"), button);
  set($("confirm-problem"), "");
  $("confirm-reason").value = "";
  show($("confirm-reason-row"), Boolean(reason));
  $("confirm-yes").disabled = false;
  confirmed = run;
  dialog.showModal();
  (reason ? $("confirm-reason") : $("confirm-no")).focus();
}

$("confirm-no").addEventListener("click", () => dialog.close());
$("confirm-form").addEventListener("submit", async (submit) => {
  submit.preventDefault();
  $("confirm-yes").disabled = true;
  set($("confirm-problem"), "");
  try {
    await confirmed($("confirm-reason").value.trim());
    dialog.close();
  } catch (error) {
    set($("confirm-problem"), `It was not done: ${error.message}`);
  }
  $("confirm-yes").disabled = false;
  wishRefresh(0);
});

function actOn(name, act) {
  const destination = known.destinations.find((one) => one.name === name) || {};
  const waiting = many((destination.pending || 0) + (destination.waiting || 0), "job", "jobs");
  const post = (path, body) => ask(`v1/destinations/${encodeURIComponent(name)}/${path}`, { method: "POST", body });
  const acts = {
    pause: { title: `Pause ${name}?`, button: "Pause", reason: true, run: (reason) => post("pause", reason ? { reason } : {}),
             text: `Nothing more is sent to it until somebody resumes it. ${waiting} wait, new ones are still taken, and no retries are spent. What is under way ends as it would.` },
    resume: { title: `Resume ${name}?`, button: "Resume", run: () => post("resume", {}),
              text: `It is sent to again at once, within its limits. ${waiting} wait for it.` },
    enter: { title: `Put ${name} into contingency?`, button: "Enter contingency", reason: true, run: (reason) => post("contingency", reason ? { enter: true, reason } : { enter: true }),
             text: `It is treated as down until somebody ends it: ${waiting} are held, no retries are spent, an incident is opened, and afterwards the load comes back in growing steps.` },
    leave: { title: `End the contingency of ${name}?`, button: "End contingency", run: () => post("contingency", { enter: false }),
             text: `It is sent to again, in growing steps until it has been stable. ${waiting} wait for it.` },
  };
  confirmThat(acts[act]);
}

const ENDS_BY_HAND = ["max_retries_exceeded", "permanent_error", "in_doubt", "partial", "expired", "dead_letters"];

function ackAlert(alert) {
  confirmThat({
    title: "Acknowledge this alert?", button: "Acknowledge", reason: true,
    text: `${alert.summary}. ` + (ENDS_BY_HAND.includes(alert.alert)
      ? "It ends by it: the dead letters stay where they are, and others raise it again."
      : "It is marked as known, and stands for as long as it is true."),
    run: (note) => ask(`v1/alerts/${encodeURIComponent(alert.id)}/ack`, { method: "POST", body: note ? { note } : {} }),
  });
}

function retryJob(shown) {
  confirmThat({
    title: `Retry ${shown.id}?`, button: "Retry",
    text: `It becomes a pending job of ${shown.destination} again, with all its retries, and is sent at its turn. If the destination has it already, it may get it twice. Its history stays.`,
    run: async () => {
      await ask(jobPath("/retry"), { method: "POST", body: {} });
      await readJob();
    },
  });
}
