"use strict";
// Handles the keys that the dialog lists, and scrolls the robots.txt to the
// deciding line.
(() => {
  const keys = document.getElementById("keys");
  let go = 0; // until when a letter after g opens a page, in ms since 1970

  const step = (by) => {
    const rows = [...document.querySelectorAll("[data-row]")];
    if (!rows.length) return;
    const at = rows.indexOf(document.activeElement);
    rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by))].focus();
  };

  const field = (selector) => {
    const found = document.querySelector(selector);
    found?.focus();
    found?.select();
    return Boolean(found);
  };

  const press = (key) => {
    if (go > Date.now()) {
      go = 0;
      const link = document.querySelector(`nav [data-key="${CSS.escape(key)}"]`);
      link?.click();
      return Boolean(link);
    }
    const inRows = document.activeElement?.matches("[data-row]");
    switch (key) {
      case "/": return field("[data-search]");
      case "x": return field("[data-explain]");
      case "g": go = Date.now() + 1500; return true;
      case "?": keys?.showModal(); return true;
      case "j": step(1); return true;
      case "k": step(-1); return true;
      case "ArrowDown": if (inRows) step(1); return inRows;
      case "ArrowUp": if (inRows) step(-1); return inRows;
    }
    return false;
  };

  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || keys?.open) return;
    if (e.target.matches("input, textarea, select")) {
      if (e.key === "Escape") e.target.blur();
      return;
    }
    if (press(e.key)) e.preventDefault();
  });

  const robots = document.getElementById("robots"), line = robots?.querySelector(".decides");
  if (line) robots.scrollTop = line.offsetTop - robots.clientHeight / 3;
})();
