"use strict";
// The page of a comparison: figures of each task, methods that can be hidden.
jedax.Comparison = class {
  constructor(data) {
    this.data = data;
    this.hidden = new Set();
    for (const swatch of document.querySelectorAll(".swatch")) swatch.style.background = this.ink(data.labels[swatch.dataset.label]);
    document.getElementById("methods").addEventListener("change", (event) => {
      const label = this.data.labels[event.target.value];
      if (event.target.checked) this.hidden.delete(label);
      else this.hidden.add(label);
      this.draw();
    });
    jedax.onColours(() => this.draw());
    for (const button of document.querySelectorAll("[data-csv]"))
      button.addEventListener("click", () => (button.dataset.csv === "curves" ? jedax.csv("curves.csv", this.curvesCsv()) : jedax.save(`${button.dataset.csv}.csv`, data.csv[button.dataset.csv])));
    this.draw();
  }

  ink(label) {
    const { color } = this.data.styles[label];
    return color === "#222222" ? jedax.colour("ink") : color;
  }

  draw() {
    this.data.labels.forEach((label, place) => {
      for (const cell of document.querySelectorAll(`[data-method="${place}"]`)) cell.hidden = this.hidden.has(label);
    });
    for (const section of document.querySelectorAll(".task")) this.drawTask(section, this.data.tables[section.dataset.task]);
    if (this.data.ranks) this.drawRanks();
  }

  drawTask(section, table) {
    const place = section.querySelector(".charts");
    const entries = table.entries.filter((entry) => !this.hidden.has(entry.label));
    const figures = [
      ["fitness", `${table.task}: best fitness`, () => this.bands(entries, "fitness"), this.overEvaluations(table, { goal: table.goal, ...jedax.cutAxis([table.goal, ...entries.flatMap(({ fitness }) => (fitness ? [...fitness.low, ...fitness.median, ...fitness.high] : []))]) })],
      ["final", `${table.task}: final best fitness of each seed`, () => this.violins(entries), { goalAcross: table.goal, yaxis: { automargin: true, type: "category", categoryorder: "array", categoryarray: entries.map((entry) => this.nameOf(entry)), range: [entries.length - 0.5, -0.5] }, xaxis: { title: { text: "final best fitness", standoff: 6 } } }],
    ];
    for (const [number, { fitness }] of (table.entries[0]?.reached || []).entries())
      figures.push([`reached-${number}`, `${table.task}: share of seeds at ${jedax.number(fitness)}${fitness === table.goal ? " (goal)" : ""}`, () => this.reached(entries, number, table.budget), this.overEvaluations(table, { yaxis: { range: [-0.02, 1.04], tickformat: ".0%" } })]);
    if (table.goal !== null) figures.push(["success", `${table.task}: seeds that reached the goal`, () => this.success(entries), { yaxis: { range: [0, 1.05], tickformat: ".0%" }, xaxis: { type: "category" } }]);
    if (table.entries.some((entry) => entry.coverage)) figures.push(["coverage", `${table.task}: coverage`, () => this.bands(entries, "coverage"), this.overEvaluations(table, { yaxis: { tickformat: "~%", rangemode: "tozero" } })]);
    const charts = figures.map(([name]) => {
      let chart = place.querySelector(`[data-chart="${name}"]`);
      if (!chart) {
        chart = jedax.element("div", null, { class: "chart", "data-chart": name });
        place.append(chart);
      }
      return chart;
    });
    this.listRuns(section, table.entries);
    figures.forEach(([name, title, traces, { goal, goalAcross, ...layout }], number) => {
      const line = { type: "line", line: { color: jedax.colour("soft"), dash: "dot", width: 1.6 } };
      const shapes = [];
      if (goal !== null && goal !== undefined) shapes.push({ ...line, xref: "paper", x0: 0, x1: 1, y0: goal, y1: goal });
      if (goalAcross !== null && goalAcross !== undefined) shapes.push({ ...line, yref: "paper", y0: 0, y1: 1, x0: goalAcross, x1: goalAcross });
      const chart = charts[number];
      jedax.chart(chart, traces(), jedax.layout(title, { shapes, ...layout }), `Chart: ${title}.`);
      if (name === "final" && !chart.dataset.listens) {
        chart.dataset.listens = "yes";
        chart.on("plotly_click", ({ points }) => { const link = points[0]?.customdata?.link; if (link) window.open(link, "_blank", "noopener"); });
      }
    });
  }

  overEvaluations(table, extra) {
    return { xaxis: { title: { text: "evaluations", standoff: 6 }, range: [0, table.budget] }, ...extra };
  }

  line(label) {
    return { color: this.ink(label), dash: this.data.styles[label].dash, width: 2, shape: "hv" };
  }

  bands(entries, column) {
    return entries.filter((entry) => entry[column]).flatMap((entry) => {
      const { x, low, median, high } = entry[column], name = jedax.plain(entry.label);
      const edge = { x, mode: "lines", line: { width: 0, shape: "hv" }, hoverinfo: "skip", legendgroup: name };
      const ink = this.ink(entry.label), [red, green, blue] = [1, 3, 5].map((place) => parseInt(ink.slice(place, place + 2), 16));
      return [
        { ...edge, y: low },
        { ...edge, y: high, fill: "tonexty", fillcolor: `rgba(${red},${green},${blue},.15)` },
        { x, y: median, name, mode: "lines", line: this.line(entry.label), hovertemplate: `%{x:,.4~s} evaluations<br>median %{y:.5~g}<extra>${name}</extra>` },
      ];
    });
  }

  // A method, and how many of its seeds have no solution.
  nameOf(entry) {
    const failed = entry.final.filter((value) => value === null).length;
    return jedax.plain(entry.label) + (failed ? `<br>${failed} of ${entry.final.length} seeds: no solution` : "");
  }

  // Links to the pages of single runs, which a chart opens by a click only.
  listRuns(place, entries) {
    const known = entries.filter((entry) => entry.links.some(Boolean));
    if (!known.length || place.querySelector(".runs")) return;
    const list = jedax.element("details", null, { class: "runs" });
    list.append(jedax.element("summary", "Pages of the runs"));
    for (const entry of known) {
      const line = jedax.element("p", `${entry.label}:`);
      entry.links.forEach((link, seed) => { if (link) line.append(" ", jedax.element("a", `seed ${entry.seeds[seed]}`, { href: link })); });
      list.append(line);
    }
    place.append(list);
  }

  violins(entries) {
    return entries.map((entry) => {
      const kept = entry.final.map((value, place) => place).filter((place) => entry.final[place] !== null);
      const failed = entry.final.length - kept.length;
      // As in final_fitness of comparisons.py: few points have no density.
      const ink = this.ink(entry.label), clear = "rgba(0,0,0,0)", outline = kept.length < 10 ? { line: { color: clear }, fillcolor: clear } : { line: { color: ink, width: 1.4 } };
      const name = this.nameOf(entry);
      return {
        type: "violin", orientation: "h", name, x: kept.map((place) => entry.final[place]), y: kept.map(() => name), points: "all", pointpos: 0, jitter: 0.5,
        spanmode: "hard", width: 0.9, ...outline, meanline: { visible: false }, marker: { size: 7, color: ink, opacity: 0.85 },
        box: { visible: !failed, width: 0.12, line: { color: ink, width: 1.4 } }, hoveron: "points", text: kept.map((place) => `seed ${entry.seeds[place]}${entry.links[place] ? ", click to open its run" : ""}`),
        customdata: kept.map((place) => ({ link: entry.links[place], seed: entry.seeds[place] })), hovertemplate: `%{text}<br>%{x:.6~g}<extra>${name}</extra>`,
      };
    });
  }

  reached(entries, number, budget) {
    return entries.filter((entry) => entry.reached[number]).map((entry) => {
      const steps = entry.reached[number].evaluations.filter((value) => value !== null).sort((one, other) => one - other);
      const share = (count) => count / entry.seeds.length, name = jedax.plain(entry.label);
      return {
        x: [0, ...steps, budget], y: [0, ...steps.map((_, place) => share(place + 1)), share(steps.length)], name, mode: "lines",
        line: this.line(entry.label), hovertemplate: `%{y:.0%} of seeds at %{x:,.4~s} evaluations<extra>${name}</extra>`,
      };
    });
  }

  success(entries) {
    const known = entries.filter((entry) => entry.success);
    return known.map((entry) => {
      const [share, low, high] = entry.success, name = jedax.plain(entry.label);
      return {
        type: "bar", x: [name], y: [share], name, marker: { color: this.ink(entry.label) }, width: 0.6,
        error_y: { type: "data", symmetric: false, array: [high - share], arrayminus: [share - low], color: jedax.colour("ink"), thickness: 1.4 },
        hovertemplate: `${name}: %{y:.0%} of ${entry.seeds.length} seeds<br>95 % interval ${Math.round(100 * low)} to ${Math.round(100 * high)} %<extra></extra>`,
      };
    });
  }

  drawRanks() {
    const { labels, ranks, difference, groups } = this.data.ranks;
    const shown = labels.map((label, place) => ({ label, rank: ranks[place] })).filter(({ label }) => !this.hidden.has(label));
    const points = shown.map(({ label, rank }, place) => ({
      x: [rank, rank], y: [0, -1 - place], mode: "lines+markers+text", text: ["", `${jedax.plain(label)} ${rank.toFixed(2)}`], textposition: rank > (1 + labels.length) / 2 ? "middle left" : "middle right",
      textfont: { color: jedax.colour("ink") }, marker: { color: this.ink(label), size: [9, 7] }, line: { color: this.ink(label), width: 1.5 }, hovertemplate: `${jedax.plain(label)}: mean rank ${rank.toFixed(2)}<extra></extra>`,
    }));
    const bars = groups.map(([first, last], place) => ({
      x: [ranks[labels.indexOf(first)] - 0.04, ranks[labels.indexOf(last)] + 0.04], y: [0.45 + 0.35 * place, 0.45 + 0.35 * place], mode: "lines", line: { color: jedax.colour("ink"), width: 5 },
      hovertemplate: `${jedax.plain(first)} to ${jedax.plain(last)}: no significant difference<extra></extra>`,
    }));
    const top = 0.8 + 0.35 * groups.length;
    const scale = { x: [1, 1 + difference], y: [top + 0.3, top + 0.3], mode: "lines+markers+text", text: [`critical difference ${difference.toFixed(2)}`, ""], textposition: "top right", marker: { symbol: "line-ns-open", size: 10, color: jedax.colour("soft") }, line: { color: jedax.colour("soft"), width: 1.5 }, hoverinfo: "skip" };
    const layout = jedax.layout("", { xaxis: { range: [0.7, Math.max(labels.length, 1 + difference) + 1.1], title: { text: "mean rank", standoff: 6 }, dtick: 1 }, yaxis: { visible: false, range: [-1.6 - shown.length, top + 1.3] }, margin: { l: 10, r: 10, t: 10, b: 44 } });
    jedax.chart(document.getElementById("ranks"), [...points, ...bars, scale], layout, `Mean ranks: ${shown.map(({ label, rank }) => `${label} ${rank.toFixed(2)}`).join(", ")}; critical difference ${difference.toFixed(2)}.`);
  }

  curvesCsv() {
    const rows = [];
    for (const table of this.data.tables) for (const entry of table.entries) for (const column of ["fitness", "coverage"]) {
      const band = entry[column];
      if (!band) continue;
      band.x.forEach((evaluations, place) => rows.push({ task: table.task, label: entry.label, column, evaluations, low: band.low[place], median: band.median[place], high: band.high[place] }));
    }
    return jedax.columns(rows);
  }
};
jedax.withCharts(() => { jedax.comparison = new jedax.Comparison(jedax.read()); });
