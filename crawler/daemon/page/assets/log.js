"use strict";
// Shows events from the stream of the server. A fast crawl has more events than a
// person can read, so it shows the newest lines twice a second.
(() => {
  const log = document.getElementById("log");
  if (!log) return;
  const most = 100, types = ["state", "visit", "brake", "file", "warning", "missed"];
  let stream = null, lines = [], timer = 0;

  const span = (kind, text) => {
    const s = document.createElement("span");
    s.className = kind;
    s.textContent = text;
    return s;
  };

  const words = (e) => {
    if (e.type === "missed") return `${e.missed} events were not shown: there were too many`;
    if (e.type === "visit") return [e.status || "failed", e.url, e.took_ms === undefined ? "" : `${e.took_ms} ms`, e.text].filter(Boolean).join(" ");
    return [e.project, e.host, e.state, e.text].filter(Boolean).join(" · ");
  };

  const line = (e) => {
    const li = document.createElement("li"), time = document.createElement("time");
    time.dateTime = e.at;
    time.title = e.at;
    time.textContent = new Date(e.at).toLocaleTimeString([], { hour12: false });
    li.append(time, span("kind", e.type), span("what", words(e)));
    return li;
  };

  const show = () => {
    timer = 0;
    log.querySelector(".quiet")?.remove();
    log.prepend(...lines.reverse().map(line));
    lines = [];
    while (log.children.length > most) log.lastElementChild.remove();
  };

  const heard = (message) => {
    const e = JSON.parse(message.data);
    if (e.type === "state" || e.type === "brake" || e.type === "file") document.dispatchEvent(new Event("decorum-changed"));
    lines.push(e);
    if (lines.length > most) lines.shift();
    timer ||= setTimeout(show, 500);
  };

  const listen = () => {
    stream?.close();
    stream = null;
    if (document.hidden) return;
    stream = new EventSource(log.dataset.events);
    for (const type of types) stream.addEventListener(type, heard);
  };

  document.addEventListener("visibilitychange", listen);
  addEventListener("pagehide", () => stream?.close());
  listen();
})();
