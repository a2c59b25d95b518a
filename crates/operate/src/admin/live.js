"use strict";
// What the scripts of all live pages share.
const live = (() => {
  const REFRESH_MS = 1000, ANSWER_WITHIN_MS = 4000, SECONDS_MAX = 300;
  const at = (id) => document.getElementById(id);
  const say = (node, text) => { if (node.textContent !== text) node.textContent = text; };
  const digits = (value) => String(Number(value >= 99.95 ? value.toFixed(0) : value.toPrecision(3)));
  const scaled = (value, units) => {
    let unit = 0;
    while (value >= 999.5 && unit + 1 < units.length) { value /= 1000; unit += 1; }
    return `${digits(value)}\u00a0${units[unit]}`;
  };
  const bytes = (value) => scaled(value, ["B", "KB", "MB", "GB", "TB", "PB"]);
  const bits = (value) => scaled(value, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]);
  const count = (value) => value.toLocaleString("en");
  const many = (value, one) => `${count(value)} ${one}${value === 1 ? "" : "s"}`;
  const time = (value) => value === null ? "\u2013" : value < 1 ? `${digits(value * 1000)}\u00a0ms` : `${digits(value)}\u00a0s`;
  const times = (value) => `${value >= 99.5 ? value.toFixed(0) : value.toFixed(1)}`;

  const make = (name, className, parent) => {
    const node = document.createElement(name);
    node.className = className;
    parent.append(node);
    return node;
  };
  // One bar of several parts, each as wide as its share of the whole.
  const bar = (cell, ...classNames) => {
    const outer = make("span", "bar", cell);
    outer.setAttribute("aria-hidden", "true");
    return classNames.map((className) => make("i", className, outer));
  };
  const widen = (part, share) => { part.style.width = `${Math.max(0, Math.min(1, share || 0)) * 100}%`; };
  // The rows of a table, made anew only when their number changes.
  const rows = (id, length, fill) => {
    const body = at(id).tBodies[0];
    while (body.rows.length > length) body.lastElementChild.remove();
    while (body.rows.length < length) fill(make("tr", "", body));
    return body.rows;
  };
  const head = (row) => { const cell = make("th", "", row); cell.scope = "row"; return cell; };
  const uptime = (seconds) => {
    const hours = seconds / 3600;
    return hours < 1 ? `${(hours * 60).toFixed(0)} min` : hours < 48 ? `${hours.toFixed(1)} h` : `${(hours / 24).toFixed(0)} days`;
  };
  // A line over the last minutes in a drawing that is SECONDS_MAX - 1 wide and 100 high; it is broken where there is no value.
  const line = (values, top) => {
    let path = "", isBroken = true;
    values.forEach((value, index) => {
      const place = `${SECONDS_MAX - values.length + index} ${(100 - 100 * value / top).toFixed(2)}`;
      // Without a length, so that one value between two breaks is a dot.
      if (value !== null) path += isBroken ? `M${place}h0` : `L${place}`;
      isBroken = value === null;
    });
    return path;
  };

  let answeredAt = null;
  const refresh = async (stopping, shows) => {
    try {
      const answer = await fetch("status.json", { cache: "no-store", signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
      if (!answer.ok) throw new Error(answer.statusText);
      const status = await answer.json();
      for (const show of shows) show(status);
      answeredAt = new Date();
      document.body.classList.remove("stale");
      say(at("state"), status.is_stopping ? stopping : "Live, once a second.");
    } catch {
      document.body.classList.add("stale");
      say(at("state"), answeredAt ? `No answer since ${answeredAt.toLocaleTimeString()}.` : "No answer.");
    }
    at("live").hidden = false;
  };
  // Shows what there is, once a second while the page is looked at.
  const run = async (stopping, shows) => {
    for (;;) {
      if (!document.hidden) await refresh(stopping, shows);
      await new Promise((resume) => setTimeout(resume, REFRESH_MS));
    }
  };
  return { at, say, bytes, bits, count, many, time, times, uptime, make, bar, widen, rows, head, line, run, SECONDS_MAX };
})();
