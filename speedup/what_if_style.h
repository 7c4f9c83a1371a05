// The style sheet and the script of the report's sliders; see what_if.h.
#pragma once

#include <string_view>

namespace tandem {

inline constexpr std::string_view kWhatIfStyle = R"(
#what-if { scroll-margin-top: 3rem; }
.sliders { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; max-width: 68rem; margin: 1.25rem 0 1rem; }
.slider { flex: 1 1 15rem; max-width: 26rem; display: grid; grid-template-columns: 1fr auto; align-items: baseline; }
.slider label { font-weight: 600; }
.slider .shown { font-variant-numeric: tabular-nums; }
.slider input, .slider .ends { grid-column: 1 / -1; }
.slider input { width: 100%; margin: .35rem 0 .1rem; accent-color: var(--good); cursor: pointer; }
.slider input:focus-visible { outline: 2px solid var(--good); outline-offset: 3px; border-radius: .3rem; }
.slider .ends { display: flex; justify-content: space-between; font-size: .8rem; color: var(--soft); }
#what-if-answer { display: grid; align-content: center; max-width: 68rem; min-height: 3.5rem; padding: .5rem 1rem; background: var(--panel); border-left: 3px solid var(--good); }
#what-if-answer.none { border-left-color: var(--bad); }
.charts { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); gap: 0 2.5rem; max-width: 68rem; }
.charts h3 { margin: 1.25rem 0 .5rem; }
.charts > div > svg { display: block; width: 100%; font-size: 13px; fill: currentColor; font-variant-numeric: tabular-nums; }
.charts .soft { fill: var(--soft); }
.charts .chosen { font-weight: 700; }
.charts .grid { stroke: var(--line); }
.charts .mark { stroke: var(--ink); stroke-opacity: .1; }
.charts .ideal { fill: none; stroke: var(--soft); stroke-width: 2; stroke-dasharray: 1 3; }
.charts .row { fill: var(--panel); }
.charts .cut { stroke: var(--ground); stroke-width: 4; }
.charts circle { stroke: var(--ground); }
@media (max-width: 56rem) { .charts { grid-template-columns: minmax(0, 1fr); } .slider { max-width: none; } }
@media print { .slider input, .slider .ends { display: none; } }
)";

// Draws what the sliders choose. A link to #what-if=2,0,1 chooses the third number of workers, the
// first bandwidth and the second latency.
inline constexpr std::string_view kWhatIfScript = R"script(
(() => {
  const part = (name) => document.getElementById("what-if-" + name);
  const { axes, algorithms, cells } = JSON.parse(part("data").textContent);
  const inputs = axes.map((axis) => part(axis.name));

  // By point, that is, the indexes of workers, bandwidth and latency: by algorithm, milliseconds.
  const results = new Map();
  for (const [algorithm, workers, bandwidth, latency, ms] of cells) {
    const key = [workers, bandwidth, latency].join();
    if (!results.has(key)) results.set(key, new Map());
    results.get(key).set(algorithm, ms);
  }
  const at = (point) => results.get(point.join()) ?? new Map();
  const throughput = (point, ms) => 1000 * axes[0].values[point[0]].samples / ms;

  // ---- words
  const few = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
  const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
  const listed = new Intl.ListFormat("en-GB");
  const rate = (value) => (value < 100 ? few : whole).format(value) + " samples/s";
  const time = (ms) => ms.toFixed(2) + " ms";
  const words = (point) =>
    point.map((index, i) => axes[i].values[index].label).filter((label) => label).join(", ");

  function nearest(point) {
    let best, least = Infinity;
    for (const key of results.keys()) {
      const other = key.split(",").map(Number);
      const steps = other.reduce((sum, index, i) => sum + Math.abs(index - point[i]), 0);
      if (steps < least) [best, least] = [other, steps];
    }
    return best;
  }

  function answer(point, ranking) {
    part("answer").classList.toggle("none", !ranking.length);
    if (!ranking.length)
      return `There is no result for ${words(point)}. The nearest one is for ${words(nearest(point))}.`;
    const ms = ranking[0][1];
    const names = ranking.filter((each) => each[1] === ms).map(([algorithm]) => algorithms[algorithm].name);
    return `${words(point)}: ${listed.format(names)} ${names.length > 1 ? "are" : "is"} the fastest with ` +
      `${time(ms)} per iteration, ${rate(throughput(point, ms))}.`;
  }

  // ---- drawing
  function add(parent, tag, attributes, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const name in attributes) element.setAttribute(name, attributes[name]);
    if (text !== undefined) element.textContent = text;
    return parent.appendChild(element);
  }
  // Empties a picture. Its units are the page's pixels, so that text has one size on every screen.
  function begin(svg, height) {
    const width = Math.max(svg.getBoundingClientRect().width, 240);
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    return width;
  }
  function text_width(svg, text) {
    const sample = add(svg, "text", { class: "chosen" }, text);
    const width = sample.getComputedTextLength();
    sample.remove();
    return width;
  }

  // Values that are many times apart get a logarithmic scale.
  const are_apart = (low, high) => high >= 8 * low;
  // Maps [low, high] to [from, to].
  function scale(logarithmic, low, high, from, to) {
    const place = logarithmic ? Math.log : (value) => value;
    return (value) => from + (to - from) * (place(value) - place(low)) / (place(high) - place(low));
  }
  function ticks(logarithmic, low, high) {
    const all = [];
    if (logarithmic) {
      const decades = Math.log10(high / low), digits = decades < 2 ? [1, 2, 5] : decades < 4 ? [1, 3] : [1];
      const step = Math.ceil(decades / 8);
      for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += step)
        all.push(...digits.map((digit) => digit * 10 ** power));
    } else {
      const power = 10 ** Math.floor(Math.log10(high));
      const step = [0.1, 0.2, 0.5, 1, 2].map((f) => f * power).find((s) => high / s <= 7);
      for (let i = 0; i * step <= high; ++i) all.push(i * step);
    }
    return all.filter((tick) => tick >= low && tick <= high);
  }

  // The axis to the right is the first that has several values.
  const over = axes.findIndex((axis) => axis.values.length > 1);
  const kOver = ["the number of workers", "bandwidth", "latency"][over];
  part("over").textContent = "Throughput over " + kOver;
  // The same scale at all settings, so that curves move when a slider does.
  const all_rates = cells.map(([, workers, , , ms]) => throughput([workers], ms));
  const least = all_rates.reduce((a, b) => Math.min(a, b));
  const most = all_rates.reduce((a, b) => Math.max(a, b));

  function draw_curves(point, ranking) {
    const svg = part("curves"), height = 390;
    const width = begin(svg, height);
    const left = 50, right = width - 14, top = 24, bottom = height - 44;
    const values = axes[over].values;
    const where = values.map((value, i) => (over === 0 ? value.workers : i + 1));
    const first = where[0], last = where[where.length - 1];
    // Both axes are of one kind, so that the ideal line is straight.
    const logarithmic = are_apart(least, most) || (over === 0 && are_apart(first, last));
    const low = logarithmic ? least / 1.3 : 0, high = most * (logarithmic ? 1.6 : 1.15);
    const y = scale(logarithmic, low, high, bottom, top);
    const x = scale(over === 0 && logarithmic, first, last, left + 14, right - 14);

    for (const tick of ticks(logarithmic, low, high)) {
      add(svg, "line", { class: "grid", x1: left, x2: right, y1: y(tick), y2: y(tick) });
      add(svg, "text", { class: "soft", x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, compact.format(tick));
    }
    add(svg, "text", { class: "soft", x: 0, y: 12 }, "samples/s");
    const chosen = point[over];
    add(svg, "line", { class: "mark", x1: x(where[chosen]), x2: x(where[chosen]), y1: top, y2: bottom, "stroke-width": 12 });
    // The chosen value is always named, others where there is room.
    const taken = [];
    for (const i of [chosen, 0, values.length - 1, ...values.keys()]) {
      const half = text_width(svg, values[i].tick) / 2 + 4;
      const middle = Math.min(Math.max(x(where[i]), half - 4), width - half + 4);
      if (taken.some(([from, to]) => middle + half > from && middle - half < to)) continue;
      taken.push([middle - half, middle + half]);
      add(svg, "text", { class: i === chosen ? "chosen" : "soft", x: middle, y: bottom + 20, "text-anchor": "middle" },
          values[i].tick);
    }
    add(svg, "text", { class: "soft", x: (left + right) / 2, y: height - 5, "text-anchor": "middle" }, axes[over].name);

    const along = values.map((_, i) => point.map((index, axis) => (axis === over ? i : index)));
    const begins = along.findIndex((p) => at(p).size);
    if (begins < 0) {
      add(svg, "text", { class: "soft", x: (left + right) / 2, y: (top + bottom) / 2, "text-anchor": "middle" },
          "There is no result for this choice.");
    } else if (over === 0 && begins + 1 < values.length) {
      const start = throughput(along[begins], Math.min(...at(along[begins]).values()));
      const clip = add(svg, "clipPath", { id: "what-if-clip" });
      add(clip, "rect", { x: left, y: top, width: right - left, height: bottom - top });
      const line = [];
      for (let i = 0; i <= 60; ++i) {
        const workers = where[begins] * (last / where[begins]) ** (i / 60);
        line.push([x(workers), y(start * workers / where[begins])].join());
      }
      add(svg, "polyline", { class: "ideal", points: line.join(" "), "clip-path": "url(#what-if-clip)" });
    }
    const fastest = ranking.length ? ranking[0][0] : -1;
    const order = [...algorithms.keys()].sort((a, b) => (a === fastest) - (b === fastest));
    for (const algorithm of order) {
      const { name, colour, dashes } = algorithms[algorithm];
      const spots = along.flatMap((p, i) => {
        const ms = at(p).get(algorithm);
        return ms ? [{ i, ms, p, x: x(where[i]), y: y(throughput(p, ms)) }] : [];
      });
      add(svg, "polyline", {
        points: spots.map((spot) => [spot.x, spot.y].join()).join(" "), fill: "none", stroke: colour,
        "stroke-width": algorithm === fastest ? 3.5 : 2, "stroke-dasharray": dashes, "stroke-linejoin": "round",
      });
      for (const spot of spots) {
        const circle = add(svg, "circle", { cx: spot.x, cy: spot.y, r: spot.i === chosen ? 5.5 : 3.5, fill: colour });
        add(circle, "title", {}, `${name}, ${words(spot.p)}: ${rate(throughput(spot.p, spot.ms))}`);
      }
    }
    svg.setAttribute("aria-label", `Throughput of each algorithm over ${kOver}. Chosen: ${words(point)}.`);
  }

  // One slow algorithm would make all other bars too short to compare. So bars are cut that are
  // many times as long as the shortest.
  const kLongest = 6;
  function draw_bars(point, ranking) {
    const svg = part("bars"), row = 30;
    const width = begin(svg, row * (algorithms.length + 1));
    const missing = [...algorithms.keys()].filter((a) => !at(point).has(a)).map((a) => [a, 0]);
    const is_best = (ms) => ms > 0 && ms === ranking[0][1];
    const label = (ms) => time(ms) + (is_best(ms) ? " – fastest" : "");
    const limit = ranking.length ? kLongest * ranking[0][1] : 0;
    const most_ms = Math.min(limit, ranking.length ? ranking[ranking.length - 1][1] : 0);
    const left = 16 + Math.max(...algorithms.map(({ name }) => text_width(svg, name)));
    // The longest bar leaves room for its label, and the shortest for its own.
    let longest = width - left;
    for (const [, ms] of ranking)
      longest = Math.min(longest, (width - left - 14 - text_width(svg, label(ms))) / Math.min(ms / most_ms, 1));
    longest = Math.max(longest, 20);
    [...ranking, ...missing].forEach(([algorithm, ms], i) => {
      const { name, colour } = algorithms[algorithm];
      const best = is_best(ms), top = row * i, baseline = top + 20;
      if (best) add(svg, "rect", { class: "row", x: 0, y: top, width, height: row, rx: 4 });
      add(svg, "text", { class: best ? "chosen" : ms ? "" : "soft", x: 6, y: baseline }, name);
      if (!ms) {
        add(svg, "text", { class: "soft", x: left, y: baseline }, "no result");
        return;
      }
      const length = Math.max(longest * Math.min(ms / most_ms, 1), 2);
      const bar = add(svg, "rect", { x: left, y: top + 6, width: length, height: row - 12, rx: 2, fill: colour });
      add(bar, "title", {}, `${name}: ${time(ms)}, ${rate(throughput(point, ms))}`);
      if (ms > limit) {
        const gap = left + 0.85 * length;
        add(svg, "line", { class: "cut", x1: gap - 4, y1: top + row - 3, x2: gap + 4, y2: top + 3 });
      }
      add(svg, "text", { class: best ? "chosen" : "", x: left + length + 8, y: baseline }, label(ms));
    });
    if (ranking.some(([, ms]) => ms > limit))
      add(svg, "text", { class: "soft", x: 6, y: row * algorithms.length + 20 }, "A bar with a gap is longer than shown.");
    svg.setAttribute("aria-label", "Milliseconds per iteration: " + (ranking.length
      ? ranking.map(([algorithm, ms]) => `${algorithms[algorithm].name} ${ms.toFixed(2)}`).join(", ") : "no result"));
  }

  function draw() {
    const point = inputs.map((input) => Number(input.value));
    const ranking = [...at(point)].sort((a, b) => a[1] - b[1]);
    inputs.forEach((input, i) => {
      const value = axes[i].values[point[i]];
      input.setAttribute("aria-valuetext", value.label);
      input.parentElement.querySelector(".shown").textContent = value.shown;
    });
    const sentence = answer(point, ranking);
    // Only news is read aloud.
    if (part("answer").textContent !== sentence) part("answer").textContent = sentence;
    draw_curves(point, ranking);
    draw_bars(point, ranking);
  }
  function follow_link() {
    const indexes = /^#what-if=(\d+),(\d+),(\d+)$/.exec(location.hash);
    if (!indexes) return;
    inputs.forEach((input, i) => { input.value = indexes[i + 1]; });
    draw();
    document.getElementById("what-if").scrollIntoView();
  }

  part("choice").hidden = false;
  for (const input of inputs) input.addEventListener("input", draw);
  addEventListener("resize", draw);
  addEventListener("hashchange", follow_link);
  draw();
  follow_link();
})();
)script";

}  // namespace tandem
