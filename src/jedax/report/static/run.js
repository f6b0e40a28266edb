"use strict";
// The page of one run: its curves, its phases, and following it while it goes on.
jedax.Curves = class {
  constructor(data) {
    this.axis = "evaluations";
    document.getElementById("curve-axis").addEventListener("change", (event) => { this.axis = event.target.value; this.draw(); });
    jedax.onColours(() => this.draw());
    this.update(data);
  }

  update(data) {
    this.data = data;
    this.draw();
  }

  draw() {
    const { rows, phases } = this.data;
    const any = Boolean(rows.evaluations && rows.replica);
    document.getElementById("curves").hidden = !any;
    document.getElementById("curve-axis").hidden = !rows.seconds;
    document.getElementById("time").hidden = !Object.keys(phases).length;
    if (any) this.drawCurves();
    if (Object.keys(phases).length) this.drawPhases();
  }

  // What is drawn: title, lines by name, and whether the axis is logarithmic.
  figures() {
    const { rows, goal } = this.data;
    const gp = Object.keys(rows).filter((name) => ["gp_signal", "gp_length_scale", "gp_noise"].includes(name));
    const found = [
      { id: "best", title: "best fitness", columns: ["max_fitness"], goal, cuts: true, says: "Of the best solution so far; steps up are new bests." },
      { id: "coverage", title: "coverage", columns: ["coverage"], percent: true, says: "Share of the cells that hold a solution." },
      { id: "qd", title: "QD score", columns: ["qd_score"], cuts: true, says: "Fitness above the task's offset, summed over the filled cells: how many behaviours are known, and how well. Solutions below the offset lower it." },
    ];
    if (rows.alpha) found.push({ id: "alpha", title: "alpha: weight of the target", columns: ["alpha"], says: "At 1 evolution strategies only go for their targets, at 0 only for fitness." });
    if (gp.length) found.push({ id: "gp", title: "Gaussian process", columns: gp, log: true, says: "What its fit to the cells came to, loop by loop." });
    if (this.data.replicas.some((replica) => replica.loops?.pool)) found.push({ id: "distance", title: "mean distance to the targets", traces: () => this.distances(), says: "How far from their targets evolution strategies set out and end. With a low alpha they may leave them for better fitness." });
    if (rows.num_varied && rows.num_scouted) found.push({ id: "kinds", title: "who searched", percent: true, traces: () => this.kinds(), says: "Of the generations since the report before. Variation has a head start; later, the longer the pool waits in vain, the more go to variation and to scouts." });
    return found.filter(({ columns = [] }) => columns.every((column) => rows[column])); // some may be missing
  }

  drawCurves() {
    const place = document.getElementById("charts");
    const figures = this.figures();
    // All places first: a chart takes the width that its place has when it is drawn.
    for (const { id, says } of figures) {
      if (document.getElementById(`chart-${id}`)) continue;
      const figure = jedax.element("div");
      figure.append(jedax.element("div", null, { class: "chart", id: `chart-${id}` }), jedax.element("p", says, { class: "chart-note" }));
      place.append(figure);
    }
    for (const figure of figures) {
      const chart = document.getElementById(`chart-${figure.id}`);
      const traces = figure.traces?.() ?? this.lines(figure);
      const unit = this.axis === "seconds" ? "seconds" : "evaluations";
      const shapes = figure.goal === null || figure.goal === undefined ? [] : [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: figure.goal, y1: figure.goal, line: { color: jedax.colour("goal"), dash: "dot", width: 2 } }];
      const cut = jedax.cutAxis(figure.cuts ? [...traces.flatMap((trace) => trace.y), figure.goal ?? null] : []);
      const anchor = traces.some((trace) => trace.y.at(-1) > figure.goal) ? "top" : "bottom"; // the label lies on the other side of the line
      const annotations = shapes.length ? [{ xref: "paper", x: 1, y: figure.goal, text: `goal (${jedax.number(figure.goal)})`, showarrow: false, xanchor: "right", yanchor: anchor, font: { color: jedax.colour("goal") } }] : [];
      const several = figure.columns?.length > 1 || figure.traces;
      const layout = jedax.layout(figure.title, { xaxis: { title: { text: unit, standoff: 6 }, rangemode: "tozero" }, yaxis: { tickformat: figure.percent ? "~%" : undefined, rangemode: figure.percent ? "tozero" : undefined, type: figure.log ? "log" : "linear", dtick: figure.log ? 1 : undefined, ...cut.yaxis }, shapes, annotations: [...annotations, ...cut.annotations], showlegend: several, legend: { orientation: "h", x: 0, yref: "container", y: 0, yanchor: "bottom" } });
      jedax.chart(chart, traces, layout, `Line chart: ${figure.title} against ${unit}.`);
    }
  }

  // Evaluations as they are, or the seconds at which a report was nearest.
  across(evaluations) {
    if (this.axis === "evaluations") return evaluations;
    const { rows } = this.data;
    return evaluations.map((count) => {
      const after = rows.evaluations.findIndex((known) => known >= count);
      if (after <= 0) return rows.seconds[after < 0 ? rows.seconds.length - 1 : 0];
      let before = after - 1;
      while (before > 0 && rows.evaluations[before] === rows.evaluations[after]) before--;
      const share = (count - rows.evaluations[before]) / (rows.evaluations[after] - rows.evaluations[before] || 1);
      return rows.seconds[before] + share * (rows.seconds[after] - rows.seconds[before]);
    });
  }

  // Places of a replica's rows.
  places(replica) {
    return this.data.rows.replica.map((one, place) => (one === replica ? place : -1)).filter((place) => place >= 0);
  }

  lines({ columns }) {
    const { rows, seed } = this.data;
    const replicas = [...new Set(rows.replica)];
    const traces = [];
    columns.forEach((column, number) => replicas.forEach((replica) => {
      const mine = this.places(replica);
      const several = replicas.length > 1;
      const name = columns.length > 1 ? column.replace("gp_", "").replaceAll("_", " ") : `seed ${seed + replica}`;
      traces.push({
        x: mine.map((place) => rows[this.axis][place]), y: mine.map((place) => rows[column][place]), name, mode: "lines",
        legendgroup: name, showlegend: columns.length > 1 && replica === replicas[0], opacity: several ? 0.85 : 1,
        line: { shape: "hv", width: several ? 1.4 : 2.4, color: jedax.palette[columns.length > 1 ? number : replica % jedax.palette.length], dash: columns.length > 1 ? ["solid", "dash", "dot"][number] : "solid" },
        hovertemplate: `%{x:,.4~s} ${this.axis}<br>%{y:.5~g}<extra>${jedax.plain(columns.length > 1 ? `${name}, seed ${seed + replica}` : name)}</extra>`,
      });
    }));
    return traces;
  }

  distances() {
    const { loops } = this.data.replicas[jedax.explorer.replica];
    if (!loops) return [];
    const { explorer } = jedax;
    const mean = (which) => loops.evaluations.map((_, loop) => {
      let sum = 0, count = 0;
      for (let es = 0; es < loops.pool; es++) {
        const value = explorer.es(loop, es)[which];
        if (Number.isFinite(value)) { sum += value; count += 1; }
      }
      return count ? sum / count : null;
    });
    const x = this.across(loops.evaluations);
    return [["before", "at the start of a loop", "dot", 1], ["after", "at its end", "solid", 0]].map(([which, name, dash, colour]) => ({
      x, y: mean(which), name, mode: "lines", line: { color: jedax.palette[colour], dash, width: 1.8 },
      hovertemplate: `%{x:,.4~s} ${this.axis}<br>%{y:.3g}<extra>${name}</extra>`,
    }));
  }

  // JEDi-X: how the generations between two reports were shared.
  kinds() {
    const { rows, generation } = this.data;
    const mine = this.places(jedax.explorer.replica);
    // A step reaches back to the report before; the first report has none, and only says where the first step begins.
    const steps = mine.slice(1).map((place, report) => [mine[report], place]);
    const share = (column) => steps.map(([from, to]) => ((rows[column][to] - rows[column][from]) * generation) / (rows.evaluations[to] - rows.evaluations[from]));
    const varied = share("num_varied"), scouted = share("num_scouted");
    const pool = varied.map((one, step) => 1 - one - scouted[step]);
    const x = mine.map((place) => rows[this.axis][place]);
    return [["variation", varied, 0], ["scouts", scouted, 2], ["pool", pool, 1]].map(([name, y, colour]) => ({
      x, y: [y[0], ...y], name, mode: "lines", stackgroup: "generations", line: { shape: "vh", width: 0, color: jedax.palette[colour] },
      fillcolor: jedax.palette[colour], hovertemplate: `%{x:,.4~s} ${this.axis}<br>%{y:.0%}<extra>${name}</extra>`,
    }));
  }

  drawPhases() {
    const entries = Object.entries(this.data.phases).filter(([, seconds]) => seconds > 0).sort((one, other) => other[1] - one[1]);
    const total = entries.reduce((sum, [, seconds]) => sum + seconds, 0);
    const traces = entries.map(([name, seconds], place) => ({
      type: "bar", orientation: "h", y: [""], x: [seconds], name: jedax.plain(name),
      marker: { color: jedax.palette[place % jedax.palette.length], line: { color: jedax.colour("paper"), width: 1 } },
      text: seconds / total > 0.08 ? jedax.plain(name) : "", textposition: "inside", insidetextanchor: "middle", textangle: 0, constraintext: "none",
      insidetextfont: { color: "#ffffff" },
      hovertemplate: `${jedax.plain(name)}: %{x:.3g} s, ${((100 * seconds) / total).toFixed(1)} %<extra></extra>`,
    }));
    document.getElementById("phase-legend").replaceChildren(...entries.map(([name, seconds], place) => {
      const item = jedax.element("li", ` ${name} ${jedax.number(seconds, 3)} s`), swatch = jedax.element("i");
      swatch.style.background = jedax.palette[place % jedax.palette.length];
      item.prepend(swatch);
      return item;
    }));
    const layout = jedax.layout("", { barmode: "stack", xaxis: { title: { text: "seconds", standoff: 4 } }, margin: { l: 10, r: 14, t: 6, b: 40 } });
    jedax.chart(document.getElementById("phases"), traces, layout, `Bar: ${entries.map(([name, seconds]) => `${name} ${jedax.number(seconds, 3)} seconds`).join(", ")}.`);
  }
};

// Asks the server whether the run has gone on, and shows what is new.
jedax.follow = async (stamp) => {
  const state = document.getElementById("live");
  try {
    const answer = await fetch(`data.json?known=${encodeURIComponent(stamp)}`, { cache: "no-store" }).catch(() => null);
    if (answer?.status === 200) {
      const found = await answer.json();
      if (found.run !== jedax.live.run) return location.reload(); // another run has taken its place
      document.getElementById("head").innerHTML = found.head;
      jedax.show(found.data);
      stamp = found.stamp;
    }
    const looked = `looked at ${new Date().toLocaleTimeString("en-GB")}`;
    if (!answer) state.textContent = "jedax view has stopped; this page shows what it last knew.";
    else state.textContent = answer.ok ? `Following the run; ${looked}.` : `${await answer.text()} (${looked}; this page shows what it last knew)`;
  } finally {
    setTimeout(() => jedax.follow(stamp), jedax.pause);
  }
};

jedax.show = (data) => {
  jedax.data = data;
  jedax.explorer.update(data);
  jedax.curves?.update(data);
};

jedax.start = () => {
  const data = (jedax.data = jedax.read());
  jedax.live = data.live;
  jedax.explorer = new jedax.Explorer(data);
  jedax.withCharts(() => {
    jedax.curves = new jedax.Curves(jedax.data);
    document.getElementById("replica").addEventListener("change", () => jedax.curves.draw());
  });
  const files = {
    cells: () => jedax.explorer.cellsCsv(), path: () => jedax.explorer.pathCsv(), loops: () => jedax.explorer.loopsCsv(),
    curves: () => jedax.data.rows, phases: () => ({ phase: Object.keys(jedax.data.phases), seconds: Object.values(jedax.data.phases) }),
  };
  for (const button of document.querySelectorAll("[data-csv]")) button.addEventListener("click", () => jedax.csv(`${button.dataset.csv}.csv`, files[button.dataset.csv]()));
  if (data.live) {
    jedax.pause = data.live.pause;
    setTimeout(() => jedax.follow(data.live.stamp), jedax.pause);
  }
};
jedax.start();
