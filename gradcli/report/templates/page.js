"use strict";
(() => {
  const page = JSON.parse(document.getElementById("drawing").textContent);
  const PAPER = 326;  // CSS pixels of a chart on A4 and on Letter, two beside each other
  let paper = false, drawn = [];

  const color = (name) => getComputedStyle(document.querySelector(paper ? ".paper" : ":root")).getPropertyValue(name).trim();

  const shown = (value) => {
    if (value == null) return "-";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(2).replace(/\.?0+e/, "e");
    const digits = size < 1e3 ? Math.max(0, 5 - size.toFixed(0).length) : 0;
    return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  };

  const steps = (value) => value >= 1e6 ? +(value / 1e6).toPrecision(6) + "M" : value.toLocaleString("en");

  // All curves of a chart over one row of steps; where one has no value stands null.
  const joined = (series) => {
    const all = [...new Set(series.flatMap((one) => one.x))].sort((a, b) => a - b);
    const place = new Map(all.map((step, at) => [step, at]));
    return [all, ...series.map((one) => {
      const row = new Array(all.length).fill(null);
      one.x.forEach((step, at) => { row[place.get(step)] = one.y[at]; });
      return row;
    })];
  };

  // What a legend shows at a place: the newest value up to there.
  const upTo = (row, at) => {
    for (let i = at; i >= 0; i--) if (row[i] != null) return row[i];
    return null;
  };

  const looks = (one, many) => ({
    label: one.label,
    stroke: color(one.hue ?? (one.look === "raw" ? "--raw" : one.look === "points" && many ? "--b" : "--a")),
    dash: one.dash ?? [],
    width: one.look === "raw" ? 1 : 2,
    spanGaps: true,
    points: { show: (one.look === "points" && one.x.length <= 120) || one.x.length < 3, size: 6, fill: color("--card") },
  });

  // A margin in the scale's own terms, so that no curve runs along the frame.
  const range = (log) => (u, least, most) => {
    if (least == null) return [0, 1];
    if (log) return [least * Math.pow(most / least || 2, -0.05), most * Math.pow(most / least || 2, 0.05)];
    const room = (most - least) * 0.06 || Math.abs(most) * 0.1 || 1;
    return [least >= 0 && least - room < 0 ? 0 : least - room, most + room];
  };

  // Of a logarithmic scale 1, 2 and 5 are labelled, of a long one the powers of ten, or some of them.
  const ofLog = (u, value) => {
    const decades = Math.log10(u.scales.y.max / u.scales.y.min), power = Math.round(Math.log10(value));
    if (decades > 3.5) return /^1e/.test(value.toExponential()) && power % Math.ceil(decades / 7) === 0;
    return /^[125]e/.test(value.toExponential());
  };
  const ticks = (log) => (u, found) => log
    ? found.map((value) => value != null && ofLog(u, +value.toPrecision(3)) ? String(+value.toPrecision(3)) : "")
    : found.map((value) => Math.abs(value) >= 1e7 || (value && Math.abs(value) < 1e-4) ? value.toExponential() : value.toLocaleString("en", { maximumFractionDigits: 6 }));

  const markBest = (best) => (u) => {
    if (best == null || best < u.scales.x.min || best > u.scales.x.max) return;
    const x = Math.round(u.valToPos(best, "x", true)), box = u.bbox, one = devicePixelRatio, ctx = u.ctx;
    const right = x > box.left + box.width * 0.8;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = color("--c");
    ctx.lineWidth = one;
    ctx.setLineDash([4 * one, 4 * one]);
    ctx.beginPath();
    ctx.moveTo(x, box.top);
    ctx.lineTo(x, box.top + box.height);
    ctx.stroke();
    ctx.font = `${11 * one}px system-ui, sans-serif`;
    ctx.textAlign = right ? "right" : "left";
    ctx.textBaseline = "top";
    ctx.fillText("best", x + (right ? -5 : 5) * one, box.top + 2 * one);
    ctx.restore();
  };

  const legend = (card, u) => {
    const at = u.cursor.idx ?? u.data[0].length - 1;
    card.querySelector("[data-step]").textContent = u.data[0].length ? steps(u.data[0][at]) : "-";
    card.querySelectorAll("[data-value]").forEach((cell, i) => { cell.textContent = shown(upTo(u.data[i + 1], at)); });
  };

  const plot = (place) => {
    const chart = page.charts[place.dataset.chart], card = place.closest(".card");
    const axis = { stroke: color("--dim"), font: "12px system-ui, sans-serif", grid: { stroke: color("--line"), width: 1 }, ticks: { show: false } };
    const many = chart.series.length > 1;
    const options = {
      width: paper ? PAPER : Math.max(220, place.clientWidth),
      height: paper ? 200 : 236,
      legend: { show: false },
      scales: { x: { time: false }, y: { distr: chart.log ? 3 : 1, range: range(chart.log) } },
      padding: [10, 14, 0, 0],
      axes: [{ ...axis, values: (u, found) => found.map(steps), space: 60, size: 30 }, { ...axis, size: 62, values: ticks(chart.log), filter: (u, found) => found }],
      cursor: { sync: { key: "steps" }, points: { size: 7 }, drag: { x: true, y: false } },
      series: [{}, ...chart.series.map((one) => looks(one, many))],
      hooks: { setCursor: [(u) => legend(card, u)], draw: [markBest(chart.best)] },
    };
    place.textContent = "";
    drawn.push({ place, card, chart, u: new uPlot(options, joined(chart.series), place) });
  };

  const draw = () => {
    drawn.forEach((one) => one.u.destroy());
    drawn = [];
    document.querySelectorAll(".plot").forEach(plot);
  };

  // Arrow keys move the cursor of all charts, as the mouse does.
  const MOVES = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
  document.addEventListener("keydown", (event) => {
    const one = drawn.find((each) => each.place === event.target);
    if (!one || !(event.key in MOVES)) return;
    event.preventDefault();
    const last = one.u.data[0].length - 1, now = one.u.cursor.idx ?? last;
    const at = Math.max(0, Math.min(last, now + MOVES[event.key]));
    one.u.setCursor({ left: one.u.valToPos(one.u.data[0][at], "x"), top: one.u.over.clientHeight / 2 }, true, true);
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-log]");
    if (!button) return;
    const chart = page.charts[button.dataset.log];
    chart.log = !chart.log;
    button.setAttribute("aria-pressed", String(chart.log));
    draw();
  });

  const onPaper = (now) => () => { paper = now; draw(); };
  addEventListener("beforeprint", onPaper(true));
  addEventListener("afterprint", onPaper(false));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width && !paper) { width = innerWidth; draw(); } });

  draw();
  window.report = { page, draw, charts: () => drawn, joined, legend };  // for a page that is kept up to date
})();
