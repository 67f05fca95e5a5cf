"use strict";
// A page that a server keeps up to date: records of the log as they are written, and at times the
// whole page anew, of which everything is taken over but what the reader has opened or chosen.
(() => {
  const { page, draw, charts, joined, legend } = window.report;
  const PAUSE = 1000, AGED = 15000;  // between two renewals; for what only the server can work out
  const tried = new Set();  // figures without a curve, for which the page was made anew
  let waiting = [], renewing = false, again = false, renewed = performance.now(), lost = false;

  const all = (selector) => [...document.querySelectorAll(selector)];
  const title = (element) => (element.closest(".card, section") ?? document).querySelector("h2, h3")?.textContent;

  // The curve grows; true where there is one for each figure of the record.
  const add = (record) => Object.entries(record).every(([key, value]) => {
    if (key === "event" || key === "step") return true;
    const series = page.charts.flatMap((chart) => chart.series).filter((one) => one.event === record.event && one.key === key);
    series.filter((one) => record.step > (one.x[one.x.length - 1] ?? 0)).forEach((one) => { one.x.push(record.step); one.y.push(value); });
    const name = `${record.event} ${key}`, known = series.length > 0 || tried.has(name);
    tried.add(name);
    return known;
  });

  const isZoomed = ({ scales: { x }, data: [steps] }) => x.min != null && (x.min > steps[0] || x.max < steps[steps.length - 1]);

  const take = (records) => {
    const whole = records.map(add).every(Boolean);
    charts().forEach((one) => { one.u.setData(joined(one.chart.series), !isZoomed(one.u)); one.u.redraw(); legend(one.card, one.u); });
    if (!whole || performance.now() - renewed > AGED) renew();
  };

  // What the reader has done to the page, to be done to the next one.
  const choices = () => {
    const open = new Set(all("details[open] > summary").map((one) => title(one) + one.textContent));
    const drawn = new Map(charts().map((one) => [title(one.place), { log: one.chart.log, zoom: isZoomed(one.u) ? { ...one.u.scales.x } : null }]));
    const active = document.activeElement, focus = active && title(active) + active.tagName + active.className;
    const [x, y] = [scrollX, scrollY];
    return { open, drawn, focus, x, y };
  };
  const choose = ({ open, drawn, focus, x, y }) => {
    all("details > summary").filter((one) => open.has(title(one) + one.textContent)).forEach((one) => { one.parentElement.open = true; });
    all("button[data-log]").filter((one) => drawn.has(title(one))).forEach((one) => {
      const { log } = drawn.get(title(one));
      page.charts[one.dataset.log].log = log;
      one.setAttribute("aria-pressed", String(log));
    });
    draw();
    charts().forEach((one) => {
      const zoom = drawn.get(title(one.place))?.zoom;
      if (zoom) one.u.setScale("x", { min: zoom.min, max: zoom.max });
    });
    all("main [tabindex], main button, main summary").find((one) => title(one) + one.tagName + one.className === focus)?.focus({ preventScroll: true });
    scrollTo(x, y);
  };

  const swap = (fresh) => {
    const before = choices();
    document.title = fresh.title;
    ["header", "nav", "main"].forEach((name) => document.querySelector(name).replaceWith(document.adoptNode(fresh.querySelector(name))));
    page.charts = JSON.parse(fresh.getElementById("drawing").textContent).charts;
    choose(before);
  };

  // Records that come meanwhile belong to the next page as well as to this one.
  const renew = async () => {
    again = renewing;
    if (renewing) return;
    renewing = true;
    try {
      const answer = await fetch("/", { cache: "no-store" });
      if (answer.ok) swap(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch { /* the stream tells that the server is gone */ }
    await null;  // the new charts know their scales only then
    renewing = false;
    renewed = performance.now();
    const records = waiting;
    waiting = [];
    if (records.length) take(records);
    if (again) setTimeout(renew, PAUSE);
    again = false;
  };

  const tell = (text) => {
    document.querySelector("[data-lost]")?.remove();
    if (!text) return;
    const note = document.createElement("p");
    note.className = "note warn";
    note.dataset.lost = "";
    note.setAttribute("role", "status");
    note.textContent = text;
    document.querySelector("header").before(note);
  };

  const source = new EventSource(page.live);
  source.addEventListener("records", (event) => {
    const records = JSON.parse(event.data);
    if (renewing) waiting.push(...records);
    else take(records);
  });
  source.addEventListener("renew", renew);
  source.addEventListener("open", () => { if (lost) { lost = false; tell(""); renew(); } });
  source.addEventListener("error", () => {
    lost = true;
    tell(`gradcli watch does not answer: this page is as of ${new Date().toLocaleTimeString()}`);
  });
})();
