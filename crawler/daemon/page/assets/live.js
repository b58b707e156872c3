"use strict";
// Keeps the parts marked data-live up to date: it fetches the page again and
// replaces the parts that differ. There is no second renderer.
(() => {
  const every = Number(document.body.dataset.refresh) * 1000;
  const light = document.getElementById("live");
  if (!every || !light) return;
  let timer = 0, busy = false, soon = false;

  const tell = (text, off) => {
    light.hidden = false;
    light.textContent = text;
    light.classList.toggle("off", off);
  };

  // A part in which a person is typing is not replaced.
  const inUse = (part) => [...part.querySelectorAll("input, textarea, select")].some((field) =>
    field === document.activeElement || field.defaultValue !== undefined && field.type !== "hidden" && field.value !== field.defaultValue);

  const put = (old, fresh) => {
    if (old.innerHTML === fresh.innerHTML || inUse(old)) return;
    const held = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    const left = old.scrollLeft;
    old.replaceChildren(...fresh.childNodes);
    old.scrollLeft = left;
    if (held !== null) [...old.querySelectorAll("a")].find((a) => a.getAttribute("href") === held)?.focus({ preventScroll: true });
  };

  const refresh = async () => {
    clearTimeout(timer);
    if (document.hidden) return tell("paused", true);
    if (busy) { soon = true; return; }
    busy = true;
    try {
      const answer = await fetch(location.pathname + location.search, { headers: { "Decorum-Live": "1" } });
      if (answer.redirected) return location.reload(); // to the login
      if (!answer.ok) throw new Error(answer.statusText);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of document.querySelectorAll("[data-live][id]")) {
        const fresh = page.getElementById(part.id);
        if (fresh) put(part, document.importNode(fresh, true));
      }
      tell("live", false);
    } catch {
      tell("no answer, trying again", true);
    } finally {
      busy = false;
      timer = setTimeout(refresh, soon ? 300 : every);
      soon = false;
    }
  };

  document.addEventListener("visibilitychange", refresh);
  document.addEventListener("decorum-changed", () => { clearTimeout(timer); timer = setTimeout(refresh, 100); });
  tell("live", false);
  timer = setTimeout(refresh, every);
})();
