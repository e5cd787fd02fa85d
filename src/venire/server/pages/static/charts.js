// Draws the charts of the page with plotly, in the place of the SVG that the server drew.
"use strict";

let drawn = [];
const plots = [...document.querySelectorAll(".drawing")];
const DASHES = ["solid", "7px,4px", "2px,4px", "10px,3px,2px,3px"];
const FORMATS = { share: ".0%", seconds: ",.3~r", number: ",.3~r", money: ",.3~r" };
const dark = matchMedia("(prefers-color-scheme: dark)");

function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    lines: ["accent", "wrong", "quiet", "ink"].map(of), areas: ["accent", "soft", "wrong", "edge", "line"].map(of),
    ink: of("ink"), quiet: of("quiet"), line: of("line"), card: of("card"),
  };
}

const text = (name) => name.replaceAll("&", "&amp;").replaceAll("<", "&lt;"); // plotly reads some HTML

function traces(chart, colour) {
  const suffix = chart.unit === "seconds" ? " s" : "";
  return chart.series.map(({ name, values }, k) => ({
    x: chart.x, y: values, name: text(name), type: "scatter", mode: "lines",
    hovertemplate: `${name ? text(name) + " " : ""}<b>%{y:${chart.unit === "share" ? ".1%" : FORMATS[chart.unit]}}${suffix}</b><extra></extra>`,
    ...(chart.stacked
      ? { stackgroup: "all", fillcolor: colour.areas[k], line: { width: 0.5, color: colour.card } }
      : { line: { width: 2, color: colour.lines[k], dash: DASHES[k] } }),
  }));
}

function ticks(chart) {
  if (chart.over) return ",d";
  const seconds = (chart.x.at(-1) - chart.x[0]) / 1000;
  return seconds < 3600 ? "%H:%M:%S" : seconds < 86400 ? "%H:%M" : "%b %-d";
}

function layout(chart, colour) {
  const axis = { color: colour.quiet, gridcolor: colour.line, zeroline: false, fixedrange: true, automargin: true };
  const [low, high] = chart.range;
  return {
    margin: { l: 8, r: 10, t: 6, b: 8 }, showlegend: false, dragmode: false, hovermode: "x unified",
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 11, color: colour.quiet },
    hoverlabel: { bgcolor: colour.card, bordercolor: colour.line, font: { color: colour.ink, size: 12 } },
    xaxis: { ...axis, ticks: "outside", ticklen: 7, tickcolor: "rgba(0,0,0,0)", type: chart.over ? "linear" : "date", nticks: 4, showgrid: false, tickformat: ticks(chart), hoverformat: chart.over ? ",d" : "%b %-d %H:%M:%S" },
    yaxis: { ...axis, range: [low, low + (high - low) * (chart.stacked ? 1 : 1.06)], nticks: 4, tickformat: FORMATS[chart.unit], ticksuffix: chart.unit === "seconds" ? " s" : "" },
  };
}

function draw() {
  const colour = colours();
  drawn = JSON.parse(document.getElementById("data").textContent);
  plots.forEach((plot, k) => {
    plot.querySelector(":scope > svg")?.remove();
    Plotly.react(plot, traces(drawn[k], colour), layout(drawn[k], colour), { displayModeBar: false, responsive: true });
  });
}

function step(plot, chart, key) {
  // The arrow keys go from point to point, as a pointer does.
  const last = chart.x.length - 1;
  const now = Number(plot.dataset.at ?? (key === "ArrowRight" ? -1 : last + 1));
  const at = { ArrowLeft: Math.max(now - 1, 0), ArrowRight: Math.min(now + 1, last), Home: 0, End: last }[key];
  if (at === undefined) return false;
  plot.dataset.at = at;
  Plotly.Fx.hover(plot, chart.series.map((_, curveNumber) => ({ curveNumber, pointNumber: at })));
  return true;
}

if (window.Plotly) {
  draw();
  dark.addEventListener("change", draw);
  document.addEventListener("data", draw);
  plots.forEach((plot, k) => {
    plot.addEventListener("keydown", (event) => step(plot, drawn[k], event.key) && event.preventDefault());
    plot.addEventListener("blur", () => { delete plot.dataset.at; Plotly.Fx.unhover(plot); });
  });
}
