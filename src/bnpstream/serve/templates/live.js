"use strict";
// The page works without this script: it then shows the last checkpoint.
(() => {
  const STATES = {
    learning: "learning now",
    quiet: "running, waiting for records",
    finished: "read to the end",
    stopped: "stopped; continue with --resume",
    empty: "nothing learnt yet",
  };
  const POINTS = 240;
  const whole = (x) => Math.round(x).toLocaleString("en");
  const digits = (x, n) => (x === null || x === undefined ? "-" : Number(x.toPrecision(n)).toLocaleString("en", { maximumSignificantDigits: n }));
  const percent = (x) => (x === null || x === undefined ? "-" : x > 0 && x < 5e-5 ? "<0.01%" : `${(100 * x).toFixed(2)}%`);
  const bytes = (x) => {
    const units = ["bytes", "kB", "MB", "GB"];
    let at = 0;
    while (x >= 1000 && at < 3) { x /= 1000; at += 1; }
    return [at ? x.toPrecision(3) : String(x), units[at]];
  };
  const span = (s) => (s < 60 ? `${Math.max(0, Math.round(s))} s` : s < 3600 ? `${Math.floor(s / 60)} min` : s < 86400 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} d`);

  let now = null;
  let points = [];
  let skew = 0; // between this clock and the server's
  let stale = false;

  const put = (name, text) => {
    for (const place of document.querySelectorAll(`[data-show="${name}"]`))
      if (place.textContent !== text) place.textContent = text;
  };

  const showAge = () => {
    if (!now) return;
    const at = Date.now() / 1000 - skew;
    put("age", now.checkpoint_time === null ? "-" : `${span(at - now.checkpoint_time)} ago`);
  };

  const showNow = () => {
    if (!now) return;
    const state = document.getElementById("state");
    if (state) {
      state.dataset.state = now.state;
      const text = STATES[now.state] + (now.state === "learning" && now.fraction !== null ? `, ${Math.floor(100 * now.fraction)}% of the source` : "");
      if (state.textContent !== text) state.textContent = text;
    }
    put("rows", whole(now.rows));
    put("speed", now.state === "learning" ? `${whole(now.rows_per_second)} per second` : now.seconds ? `in ${span(now.seconds)}` : "");
    put("clusters", whole(now.clusters));
    put("evidence", digits(now.evidence_per_row, 4));
    put("novelty", percent(now.novelty));
    put("rejects", whole(now.rejects));
    const events = now.events;
    const gone = (events.death || 0) + (events.retire || 0);
    put("events", `${whole(events.birth || 0)} · ${whole(events.merge || 0)} · ${whole(gone)}`);
    const behind = Object.values(now.lag).reduce((a, b) => a + b, 0);
    if (Object.keys(now.lag).length) {
      const isFile = now.lag_unit === "bytes";
      const [value, unit] = isFile ? bytes(behind) : [whole(behind), "records"];
      put("lag", value);
      put("unit", unit);
    } else {
      put("lag", now.state === "finished" ? "0" : now.fraction === null ? "-" : `${Math.ceil(100 * (1 - now.fraction))}%`);
      put("unit", now.state === "finished" ? "at the end of the source" : now.fraction === null ? "length of the source unknown" : "of the source");
    }
    showAge();
    for (const chart of document.querySelectorAll("[data-spark]")) draw(chart, chart.dataset.spark);
  };

  const draw = (chart, name) => {
    const known = points.filter((point) => typeof point[name] === "number");
    if (known.length < 2) return;
    const values = known.map((point) => point[name]);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const [first, last] = [known[0].time, known[known.length - 1].time];
    const x = (point) => (100 * (point.time - first)) / Math.max(last - first, 1e-9);
    const y = (value) => 18 - (16 * (value - low)) / Math.max(high - low, 1e-9);
    chart.firstElementChild.setAttribute("d", `M${known.map((p) => `${x(p).toFixed(1)} ${y(p[name]).toFixed(1)}`).join("L")}`);
  };

  const take = (news) => {
    now = news;
    skew = Date.now() / 1000 - news.time;
    const last = points[points.length - 1];
    if (news.moved && (!last || news.moved.time > last.time)) points.push(news.moved);
    if (points.length > POINTS) points.splice(0, points.length - POINTS);
    showNow();
  };

  // Replace parts of the page by their current versions; open details stay open.
  const refresh = async () => {
    if (document.hidden) { stale = true; return; }
    stale = false;
    const answer = await fetch(location.pathname.split("/").pop() + location.search || "./", { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!document.querySelector("section#clusters") !== !fresh.querySelector("section#clusters")) { location.reload(); return; }
    for (const part of document.querySelectorAll("[data-part]")) {
      const other = part.id && fresh.getElementById(part.id);
      if (!other || other.innerHTML === part.dataset.was) continue;
      const was = other.innerHTML;
      const places = (root) => [...root.querySelectorAll("details")].map((one) => [one.closest("tr")?.id || one.className, one]);
      const open = new Set(places(part).filter(([, one]) => one.open).map(([place]) => place));
      const closed = new Set(places(part).filter(([, one]) => !one.open).map(([place]) => place));
      for (const [place, one] of places(other)) if (open.has(place) || closed.has(place)) one.open = open.has(place);
      const focused = part.contains(document.activeElement) ? path(part, document.activeElement) : null;
      part.replaceChildren(...other.childNodes);
      part.dataset.was = was;
      if (focused) focused.reduce((at, n) => at?.children[n], part)?.focus({ preventScroll: true });
    }
    for (const place of document.querySelectorAll("[data-show='topics']"))
      place.textContent = fresh.querySelector("[data-show='topics']")?.textContent ?? "";
  };
  const path = (root, element) => {
    const steps = [];
    for (let at = element; at !== root; at = at.parentElement) steps.unshift([...at.parentElement.children].indexOf(at));
    return steps;
  };

  const connect = () => {
    const shown = document.getElementById("connection");
    const source = new EventSource("events");
    source.addEventListener("now", (event) => take(JSON.parse(event.data)));
    source.addEventListener("checkpoint", (event) => {
      const main = document.getElementById("main");
      const { version } = JSON.parse(event.data);
      if (main.dataset.version === version) return;
      main.dataset.version = version;
      put("births", "");
      refresh().catch(() => { stale = true; });
    });
    source.addEventListener("births", (event) => {
      const ids = JSON.parse(event.data).births.slice(-5).map((birth) => birth.id).join(", ");
      put("births", `Just born: ${ids}; shown here after the next checkpoint.`);
    });
    source.addEventListener("open", () => { shown.textContent = "Connected."; });
    source.addEventListener("error", () => {
      shown.textContent = source.readyState === EventSource.CLOSED ? "Not connected: reload the page." : "Connection lost; trying again.";
    });
    document.addEventListener("visibilitychange", () => { if (!document.hidden && stale) refresh().catch(() => {}); });
    addEventListener("pagehide", () => source.close());
    addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  };

  const startSearch = () => {
    const box = document.getElementById("q");
    const results = document.getElementById("results");
    document.addEventListener("keydown", (event) => {
      const typing = /^(input|select|textarea)$/i.test(event.target.tagName);
      if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); box.focus(); }
    });
    if (!results) return;
    let timer = 0;
    box.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        history.replaceState(null, "", `search?q=${encodeURIComponent(box.value)}`);
        refresh().catch(() => {});
      }, 250);
    });
  };

  addEventListener("DOMContentLoaded", () => {
    const place = document.getElementById("now");
    if (place) {
      points = JSON.parse(place.dataset.points);
      take(JSON.parse(place.dataset.now));
    }
    setInterval(showAge, 1000);
    startSearch();
    connect();
  });
})();
