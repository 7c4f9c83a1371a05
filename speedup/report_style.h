// The report's style sheet and script: light and dark, for phones, wide screens and paper.
#pragma once

#include <string_view>

namespace tandem {

inline constexpr std::string_view kReportStyle = R"(
:root {
  color-scheme: light dark;
  --ground: #ffffff; --panel: #f5f6f8; --ink: #23262c; --soft: #5d636e; --line: #dcdfe5;
  --good: #0b6bcb; --bad: #b3261e; --shadow: rgb(0 0 0 / 28%);
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #16181d; --panel: #1f2229; --ink: #e3e5ea; --soft: #a0a6b2; --line: #363b45;
    --good: #7cc0ff; --bad: #ff9a90; --shadow: rgb(255 255 255 / 32%);
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 2.5rem 1.5rem 4rem; max-width: 92rem;
  background: var(--ground); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .75rem; letter-spacing: -.01em; }
h2 { font-size: 1.35rem; margin: 3rem 0 .75rem; padding-top: .75rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
h3 .soft { font-weight: 400; }
p, dl, ul { max-width: 46rem; }
p { margin: .5rem 0; }
a { color: var(--good); }
nav { margin: 1.25rem 0 0; font-size: .95rem; }
nav a { display: inline-block; margin-right: 1.25rem; padding: .25rem 0; }
code { font: .9em/1.4 ui-monospace, "SFMono-Regular", Menlo, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
.soft { color: var(--soft); }
.name { white-space: nowrap; }
.scroll {
  overflow-x: auto; margin: .75rem 0;
  /* Shadows where there is more: covers move with the content, shadows stay. */
  background:
    linear-gradient(to right, var(--ground) 40%, transparent) left / 3rem 100% local no-repeat,
    linear-gradient(to left, var(--ground) 40%, transparent) right / 3rem 100% local no-repeat,
    linear-gradient(to right, var(--shadow), transparent) left / 1rem 100% scroll no-repeat,
    linear-gradient(to left, var(--shadow), transparent) right / 1rem 100% scroll no-repeat;
}
.more { display: none; margin: -.5rem 0 1rem; font-size: .85rem; color: var(--soft); }
.cut + .more { display: block; }
.chooser { position: sticky; top: 0; z-index: 2; max-width: none; margin: 2.5rem 0 -1rem; padding: .5rem 0; background: var(--ground); }
.chooser select { font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--line); border-radius: .3rem; padding: .2rem .4rem; max-width: 100%; }
[hidden] { display: none !important; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
.wide { width: 100%; }
th, td { padding: .4rem .5rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { font-weight: 600; vertical-align: bottom; }
.wide thead tr:first-child th { border-bottom: 0; padding-bottom: 0; }
thead .group { text-align: center; color: var(--soft); font-weight: 500; }
.begin { border-left: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
.wide th:first-child { position: sticky; left: 0; background: var(--ground); }
tbody th { font-weight: 500; }
tbody tr.best td, .wide tbody tr.best th { font-weight: 700; background: var(--panel); }
td .soft { font-size: .8rem; font-weight: 400; }
td.failed { text-align: left; color: var(--bad); white-space: normal; min-width: 18rem; }
.swatch { display: inline-block; width: .7rem; height: .7rem; border-radius: 50%; margin-right: .45rem; }
tr.paper td, tr.paper th { border-bottom: 0; color: var(--soft); font-style: italic; }
figure { margin: 1.5rem 0 2.25rem; }
figure svg { display: block; width: 100%; min-width: 46rem; max-width: 68rem; height: auto; }
figure svg text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
figcaption { max-width: 46rem; font-size: .925rem; color: var(--soft); margin-top: .5rem; }
.legend { max-width: none; font-size: .9rem; }
.legend span { display: inline-block; margin-right: 1rem; }
.legend svg { vertical-align: -1px; }
ul.missing { list-style: none; }
.missing { padding: .75rem 1rem; background: var(--panel); border-left: 3px solid var(--bad); }
dl { display: grid; grid-template-columns: minmax(8rem, max-content) 1fr; gap: .35rem 1.25rem; margin: .75rem 0; }
dt { font-weight: 600; }
dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  body { padding: 1.5rem 1rem 3rem; }
  h1 { font-size: 1.5rem; }
  .summary th, .summary td { padding: .4rem .3rem; }
  .summary th, .summary td:first-child { white-space: normal; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .6rem; }
}
@media print {
  @page { size: A4 landscape; margin: 12mm; }
  body { padding: 0; max-width: none; font-size: 11pt; }
  nav, .chooser, .more { display: none; }
  [data-setting][hidden] { display: block !important; }
  table { font-size: 7.5pt; }
  th, td { padding: .25rem .4rem; }
  .scroll { overflow: visible; background: none; }
  figure svg { min-width: 0; }
  h2, h3 { break-after: avoid; }
  figure, table, dl { break-inside: avoid; }
  .swatch, svg, tr.best { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
)";

// Shows the chosen setting. Adds a hint below tables and figures that are wider than the page.
inline constexpr std::string_view kReportScript = R"(
const setting = document.getElementById("setting");
const scrollers = [...document.querySelectorAll(".scroll")];
for (const scroller of scrollers) {
  const more = document.createElement("p");
  more.className = "more";
  more.textContent = "More to the right: scroll sideways →";
  scroller.after(more);
}
function show() {
  if (setting)
    for (const part of document.querySelectorAll("[data-setting]"))
      part.hidden = setting.value !== "" && part.dataset.setting !== setting.value;
  for (const scroller of scrollers)
    scroller.classList.toggle("cut", scroller.scrollWidth > scroller.clientWidth + 1);
}
if (setting) setting.addEventListener("change", show);
addEventListener("resize", show);
show();
)";

}  // namespace tandem
