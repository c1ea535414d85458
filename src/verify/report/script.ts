/**
 * What the report does when it is open: zoom, axis, hover, jumping to a violation. Plain browser script, kept as text; all
 * that it shows it takes from attributes and sets as text, so nothing in a history can become markup.
 */
export const SCRIPT = `
"use strict";
(() => {
  const scroller = document.getElementById("scroller");
  const timeline = document.getElementById("timeline");
  const tip = document.getElementById("tip");
  if (!scroller || !timeline || !tip) return;
  const axis = document.getElementById("axis");
  const start = Number(timeline.dataset.from);
  const length = Number(timeline.dataset.length);
  const tokens = [...timeline.querySelectorAll(".token")];
  const labels = [...timeline.querySelectorAll(".fault text")];
  const SVG = "http://www.w3.org/2000/svg";
  const MOST = 2e6;
  let width = 0;
  let wide = [];
  const percent = (element, name) => (parseFloat(element.getAttribute(name)) / 100) * width;

  const units = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];
  const write = (ns, step) => {
    const [size, unit] = units.findLast(([size]) => Math.max(Math.abs(ns), step) >= size) ?? units[0];
    const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
    return ns === 0 ? "0" : (ns / size).toFixed(Math.min(digits, 9)) + " " + unit;
  };
  const add = (parent, name, attributes, text) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
  };
  // Only the part in view, and a little around it, has ticks: a wide timeline would have too many.
  const drawAxis = () => {
    const raw = (length / width) * 110;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw) ?? raw;
    const from = start + (Math.max(0, scroller.scrollLeft - 400) / width) * length;
    const until = start + ((scroller.scrollLeft + scroller.clientWidth + 400) / width) * length;
    const height = Number(timeline.getAttribute("height"));
    axis.replaceChildren();
    for (let at = Math.max(0, Math.ceil(from / step)) * step; at <= Math.min(until, start + length); at += step) {
      const x = ((at - start) / length) * 100 + "%";
      add(axis, "line", { x1: x, x2: x, y1: 34, y2: height - 10 });
      const px = ((at - start) / length) * width;
      const anchor = px < 30 ? "start" : px > width - 30 ? "end" : "middle";
      add(axis, "text", { x, y: height - 1, "text-anchor": anchor }, write(at, step));
    }
  };
  // The token of a bar that reaches out of view stands in the middle of what is in view.
  const placeTokens = () => {
    const [left, right] = [scroller.scrollLeft, scroller.scrollLeft + scroller.clientWidth];
    for (const { text, from, until } of wide) {
      const middle = (Math.max(from, Math.min(left, until)) + Math.min(until, Math.max(right, from))) / 2;
      text.setAttribute("x", middle - from);
    }
  };
  // In each line a label stands where the one before it has ended; one that finds no room is left to the tip.
  const placeLabels = () => {
    const ends = [0, 0];
    for (const label of labels) {
      label.style.display = "";
      const from = percent(label, "x");
      const row = ends.findIndex((end) => end <= from);
      label.style.display = row < 0 ? "none" : "";
      if (row < 0) continue;
      label.setAttribute("y", 12 + 14 * row);
      ends[row] = from + label.getComputedTextLength() + 6;
    }
  };
  const look = () => {
    drawAxis();
    placeTokens();
  };
  const setWidth = (wanted, centre) => {
    const keep = centre ?? (scroller.scrollLeft + scroller.clientWidth / 2) / (width || scroller.clientWidth);
    width = Math.min(MOST, Math.max(scroller.clientWidth, wanted));
    timeline.style.width = width + "px";
    wide = [];
    for (const token of tokens) {
      const text = token.firstElementChild;
      const [from, long] = [percent(token, "x"), percent(token, "width")];
      token.classList.toggle("narrow", long < text.textContent.length * 7 + 4);
      text.setAttribute("x", "50%");
      if (long > scroller.clientWidth / 3) wide.push({ text, from, until: from + long });
    }
    placeLabels();
    scroller.scrollLeft = keep * width - scroller.clientWidth / 2;
    look();
  };
  const show = (flag) => {
    const [from, until] = [Number(flag.dataset.from), Number(flag.dataset.until)];
    const span = Math.max(until - from, length / 1e5);
    setWidth((length / span) * scroller.clientWidth * 0.4, ((from + until) / 2 - start) / length);
    flag.classList.remove("lit");
    void flag.getBoundingClientRect();
    flag.classList.add("lit");
    scroller.scrollIntoView({ block: "nearest" });
  };

  for (const button of document.querySelectorAll("[data-zoom]")) {
    const factor = Number(button.dataset.zoom);
    button.addEventListener("click", () => setWidth(factor === 0 ? 0 : width * factor));
  }
  for (const button of document.querySelectorAll("[data-flag]")) {
    const flag = document.getElementById("flag" + button.dataset.flag);
    if (flag) button.addEventListener("click", () => show(flag));
  }
  scroller.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const at = (scroller.scrollLeft + event.clientX - scroller.getBoundingClientRect().left) / width;
    setWidth(width * (event.deltaY < 0 ? 1.25 : 0.8), at);
  }, { passive: false });
  scroller.addEventListener("scroll", look);
  window.addEventListener("resize", () => setWidth(width));

  document.addEventListener("pointermove", (event) => {
    const pointed = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
    tip.style.display = pointed ? "block" : "none";
    if (!pointed) return;
    tip.textContent = pointed.getAttribute("data-tip");
    const { width: wide, height: high } = tip.getBoundingClientRect();
    tip.style.left = Math.min(event.clientX + 14, window.innerWidth - wide - 8) + "px";
    tip.style.top = (event.clientY + 18 + high > window.innerHeight ? event.clientY - high - 10 : event.clientY + 18) + "px";
  });

  setWidth(Number(timeline.dataset.width));
})();
`;
