"use strict";
// The page works without this script: it then shows everything.
(() => {
  const PAGE = 200; // rows shown at a time
  const root = document.documentElement;
  const DOWN_FIRST = { weight: true, size: true, recent: true, born: true, id: false };

  const remember = (theme) => {
    try { localStorage.setItem("bnpstream-theme", theme); } catch { /* a local file may have no storage */ }
  };
  const remembered = () => {
    try { return localStorage.getItem("bnpstream-theme"); } catch { return null; }
  };
  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const stored = remembered();
  if (stored === "dark" || stored === "light") root.dataset.theme = stored;

  const startTheme = () => {
    const button = document.getElementById("theme");
    const name = () => { button.textContent = isDark() ? "Light theme" : "Dark theme"; };
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      remember(root.dataset.theme);
      name();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
    button.hidden = false;
    name();
  };

  const startTable = (table) => {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((element, place) => ({
      element,
      place,
      text: [element.dataset.id, ...[...element.querySelectorAll("bdi")].map((part) => part.textContent)]
        .join(" ")
        .toLowerCase(),
    }));
    const search = document.getElementById("search");
    const select = document.getElementById("sort");
    const found = document.getElementById("found");
    const more = document.getElementById("more");
    const heads = [...table.tHead.querySelectorAll("[data-sort]")];
    let key = "weight";
    let down = true;
    let limit = PAGE;

    const show = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let matching = 0;
      for (const row of rows) {
        const match = words.every((word) => row.text.includes(word));
        row.element.hidden = !match || matching >= limit;
        matching += match;
      }
      found.textContent = words.length
        ? `${matching.toLocaleString("en")} of ${rows.length.toLocaleString("en")} clusters`
        : `${rows.length.toLocaleString("en")} clusters`;
      more.hidden = matching <= limit;
      more.textContent = `Show ${Math.min(PAGE, matching - limit)} more`;
    };

    const sort = (by, downwards) => {
      key = by;
      down = downwards;
      const value = (row) => {
        const text = row.element.dataset[key];
        return text === "" ? null : Number(text);
      };
      rows.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === null || y === null) return (x === null) - (y === null) || a.place - b.place;
        return (down ? y - x : x - y) || a.place - b.place;
      });
      body.append(...rows.map((row) => row.element));
      for (const head of heads) {
        if (head.dataset.sort === key) head.setAttribute("aria-sort", down ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      }
      select.value = key;
      show();
    };

    const open = () => {
      const row = /^#cluster-\d+$/.test(location.hash) && document.getElementById(location.hash.slice(1));
      if (!row) return;
      if (row.hidden) {
        search.value = "";
        limit = Math.max(limit, rows.findIndex((other) => other.element === row) + 1);
        show();
      }
      const details = row.querySelector("details");
      if (details) details.open = true;
      row.scrollIntoView();
    };

    for (const head of heads) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const by = head.dataset.sort;
        sort(by, by === key ? !down : DOWN_FIRST[by]);
      });
    }
    select.addEventListener("change", () => sort(select.value, DOWN_FIRST[select.value]));
    search.addEventListener("input", () => { limit = PAGE; show(); });
    more.addEventListener("click", () => { limit += PAGE; show(); });
    document.addEventListener("click", (event) => {
      // A link to the current address fires no hashchange event, so open it here.
      const link = event.target.closest?.("a[href^='#cluster-']");
      if (link && link.hash === location.hash) open();
    });
    addEventListener("hashchange", open);
    for (const tool of document.querySelectorAll(".tool[hidden]")) tool.hidden = false;
    show();
    open();
  };

  addEventListener("DOMContentLoaded", () => {
    startTheme();
    const table = document.getElementById("cluster-table");
    if (table) startTable(table);
  });
})();
