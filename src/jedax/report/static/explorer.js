"use strict";
// The behaviour space with its cells, the solution of one of them, and the search played back.
jedax.LAYERS = {
  fitness: { name: "fitness", map: "viridis", says: "How good the best solution of each cell is." },
  counts: { name: "evaluations (log)", map: "magma", log: true, says: "How many of the solutions that were tried fell into each cell." },
  gp_mean: { name: "GP mean", map: "viridis", says: "The fitness that a Gaussian process, fitted to all cells, expects of each." },
  gp_std: { name: "GP standard deviation", map: "cividis", says: "How unsure the Gaussian process is: bright cells are little known." },
  rank: { name: "Pareto rank", map: "viridis", reversed: true, says: "Rank 1 (bright): no other cell is both more promising and less known." },
  improved: { name: "last improved", map: "cividis", says: "When the solution of each cell was found: bright is late." },
};

jedax.MOMENTS = [0, 0.12, 0.35, 0.65];

jedax.Explorer = class {
  constructor(data) {
    this.layer = "fitness";
    this.replica = 0;
    this.axes = [0, 1];
    this.loop = null;
    this.cell = null;
    this.hover = null;
    this.cache = new Map();
    this.asked = new Map(); // what came of solutions that acted, why others could not, and those that act now
    this.troubles = new Map();
    this.acting = new Set();
    const get = (id) => document.getElementById(id);
    this.map = get("map");
    this.scene = get("scene");
    this.listen(get);
    this.update(data);
  }

  // Takes new data: at first, and whenever a run that is followed has gone on.
  update(data) {
    this.data = data;
    this.cache.clear();
    document.getElementById("explorer").hidden = !data.space;
    if (!data.space) return;
    const { space } = data, first = !this.centroids;
    this.dimensions = space.lows.length;
    this.centroids = space.centroids.map(jedax.unpack);
    this.outlines = space.outlines && this.split(space.outlines);
    if (first) {
      this.replica = data.best_replica;
      this.fromAddress();
    }
    const best = this.now.best.cell;
    if (this.cell === null) this.cell = best;
    for (const id of ["best-legend", "cell-legend", "show-best"]) document.getElementById(id).hidden = best === null;
    this.fill();
    this.draw();
  }

  get now() {
    return this.data.replicas[this.replica];
  }

  get loops() {
    return this.now.loops;
  }

  fromAddress() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    const seed = this.data.replicas.findIndex((replica) => String(replica.seed) === wanted.get("seed"));
    if (seed >= 0) this.replica = seed;
    if (wanted.get("layer") in this.now.layers) this.layer = wanted.get("layer");
    const cell = wanted.get("cell");
    if (/^\d+$/.test(cell) && Number(cell) < this.centroids[0].length) this.cell = Number(cell);
  }

  split({ sizes, x, y }) {
    const xs = jedax.unpack(x), ys = jedax.unpack(y);
    let from = 0;
    return sizes.map((size) => {
      const corners = [];
      for (let place = from; place < from + size; place++) corners.push([xs[place], ys[place]]);
      from += size;
      return corners;
    });
  }

  // What belongs to a key and the shown replica: made when it is first needed, and again after new data.
  cached(key, make) {
    const mine = `${key} of ${this.replica}`;
    if (!this.cache.has(mine)) this.cache.set(mine, make());
    return this.cache.get(mine);
  }

  // Values of a layer at the end, NaN where there are none.
  values(layer) {
    return this.cached(layer, () => {
      const values = jedax.unpack(this.now.layers[layer]);
      if (layer === "counts") return values.map((value) => (value > 0 ? value : NaN));
      return layer === "improved" ? values.map((value) => (value >= 0 ? value : NaN)) : values;
    });
  }

  shown(layer = this.layer, loop = this.loop) {
    const values = this.values(layer);
    if (loop === null) return { values, note: "", at: this.data.evaluations };
    const at = this.loops.until[loop] ?? this.loops.evaluations[loop];
    if (layer === "fitness") {
      const before = this.now.snapshots.filter((snapshot) => snapshot.evaluations <= at).at(-1);
      if (before) return { values: this.unpacked(before, "fitness"), note: `Cells as they were after ${jedax.number(before.evaluations)} evaluations.`, at: before.evaluations };
    }
    if (layer === "improved" || layer === "fitness") {
      const improved = this.values("improved");
      return { values: values.map((value, cell) => (improved[cell] <= at ? value : NaN)), note: "Cells that have not changed since.", at };
    }
    if (layer.startsWith("gp_")) {
      const before = this.now.gp_snapshots.filter((snapshot) => snapshot.evaluations <= this.loops.evaluations[loop]).at(-1);
      if (before) return { values: this.unpacked(before, layer), note: `The GP as it was after ${jedax.number(before.evaluations)} evaluations.` };
    }
    return { values, note: "As it was at the end: this was not kept for every loop." };
  }

  unpacked(snapshot, name) {
    return this.cached(`${name} at ${snapshot.evaluations}`, () => jedax.unpack(snapshot[name]));
  }

  limits(layer = this.layer) {
    // The GP changes so much from loop to loop that only what is shown sets its scale.
    const values = layer.startsWith("gp_") ? this.shown().values : this.values(layer);
    const { low, lowest, high } = jedax.colourLimits(values);
    return low <= high ? [jedax.LAYERS[layer].log ? lowest : low, high, lowest] : [0, 1, 0];
  }

  shade(value, [low, high], layer = this.layer) {
    const { map, log, reversed } = jedax.LAYERS[layer];
    const colours = this.data.maps[map];
    let share = log ? Math.log(value / low) / Math.log(high / low || 1) : (value - low) / (high - low);
    if (!Number.isFinite(share)) share = 1;
    share = Math.min(1, Math.max(0, share));
    return colours[Math.round((reversed ? 1 - share : share) * (colours.length - 1))];
  }

  // Sizes a canvas for a box of the descriptor space, and returns how to get from there to pixels.
  frame(canvas, lows, highs, { left, bottom, gap } = this.margins(canvas, lows, highs)) {
    const [across, up] = [highs[0] - lows[0], highs[1] - lows[1]];
    const ratio = this.dimensions === 1 && canvas !== this.scene ? 0.3 : up / across;
    const { pen, width, height } = jedax.pen(canvas, (width) => Math.round(width * (ratio > 0.4 && ratio < 1.6 ? ratio : this.dimensions === 1 ? 0.3 : 0.8)));
    const to = ([x, y]) => [left + ((x - lows[0]) / across) * (width - left - gap), height - bottom - ((y - lows[1]) / up) * (height - bottom - gap)];
    return { pen, to, width, height, left, bottom };
  }

  box() {
    const { lows, highs } = this.data.space;
    const [x, y] = this.axes;
    return this.dimensions === 1 ? [[lows[0], 0], [highs[0], 1]] : [[lows[x], lows[y]], [highs[x], highs[y]]];
  }

  place(cell) {
    if (this.dimensions === 1) return [this.centroids[0][cell], 0.5];
    return [this.centroids[this.axes[0]][cell], this.centroids[this.axes[1]][cell]];
  }

  // Where a cell is on the screen, in the coordinates of the window.
  screen(cell) {
    const box = this.map.getBoundingClientRect();
    const [x, y] = this.view.to(this.place(cell));
    return [box.left + x, box.top + y];
  }

  cellAt(event) {
    const box = this.map.getBoundingClientRect();
    const at = [event.clientX - box.left, event.clientY - box.top];
    const [lows, highs] = this.box();
    const corners = [this.view.to(lows), this.view.to(highs)];
    if (at[0] < corners[0][0] - 3 || at[0] > corners[1][0] + 3 || at[1] > corners[0][1] + 3 || at[1] < corners[1][1] - 3) return null;
    // Nearest in the unit box, as the search assigned them.
    const share = (axis) => (at[axis] - corners[0][axis]) / (corners[1][axis] - corners[0][axis]);
    const off = (there, axis) => (there[axis] - lows[axis]) / (highs[axis] - lows[axis]) - share(axis);
    return this.nearest((there) => off(there, 0) ** 2 + (this.dimensions === 1 ? 0 : off(there, 1) ** 2));
  }

  // The cell whose place has the smallest distance, of several at one place that on top; null if all are infinite.
  nearest(distance) {
    let best = null, least = Infinity;
    for (const cell of this.order) {
      const here = distance(this.place(cell));
      if (here <= least && here < Infinity) { least = here; best = cell; }
    }
    return best;
  }

  shareAPlace(one, other) {
    const [x, y] = this.place(one), there = this.place(other);
    return x === there[0] && y === there[1];
  }

  // The cell below another one that lies over it, and the topmost after the lowest.
  below(cell) {
    const stack = this.order.filter((other) => this.shareAPlace(cell, other));
    return stack.at(stack.indexOf(cell) - 1);
  }

  // Whether cells lie over each other, as those of a grid with more than two descriptors.
  get isStacked() {
    const numPlaces = () => this.axes.reduce((product, axis) => product * new Set(this.centroids[axis]).size, 1);
    return !this.outlines && this.cached(`places ${this.axes}`, numPlaces) < this.centroids[0].length;
  }

  // Cells in the order in which they are drawn. Of more than two descriptors two are shown: the highest value is on top.
  stacked(values) {
    const cells = [...values.keys()], height = (cell) => (Number.isFinite(values[cell]) ? values[cell] : -Infinity);
    return this.outlines ? cells : cells.sort((one, other) => height(one) - height(other) || 0);
  }

  draw() {
    if (!this.data.space) return;
    this.drawMap();
    this.drawDetail();
    this.drawReplay();
    this.drawStrip();
  }

  drawMap() {
    const [lows, highs] = this.box();
    const view = (this.view = this.frame(this.map, lows, highs));
    const { values, note } = this.shown();
    const limits = this.limits();
    this.order = this.stacked(values);
    this.axis(view, lows, highs);
    this.drawSpace(view, values, limits, this.layer, this.order);
    if (this.loop === null) this.drawBest(view);
    else this.drawLoop(view, this.loop);
    this.drawn = jedax.copy(this.map);
    this.outlineCells();
    this.drawScale(limits);
    const title = jedax.LAYERS[this.layer].name;
    document.getElementById("map-title").textContent = `Behaviour space: ${title}`;
    const cut = limits[2] < limits[0] ? ` Colours are cut off below ${jedax.number(limits[0])}; the lowest value is ${jedax.number(limits[2])}.` : "";
    const over = this.isStacked ? " Cells lie over each other: choose one again (Enter) for the next below it." : "";
    document.getElementById("map-note").textContent = `${jedax.LAYERS[this.layer].says}${cut}${over} ${note}`;
    document.getElementById("map-legend").hidden = this.loop !== null;
    for (const name of ["start", "target"]) document.getElementById(`${name}-legend`).hidden = !this.data.scene?.[name];
    const filled = values.reduce((sum, value) => sum + Number.isFinite(value), 0);
    this.map.setAttribute("aria-label", `Map of the behaviour space, coloured by ${title}: ${filled} of ${values.length} cells have a value, from ${jedax.number(limits[2])} to ${jedax.number(limits[1])}. Arrow keys move from cell to cell.`);
  }

  // The cells of the space, and the scene over them.
  drawSpace(view, values, limits, layer, order) {
    const { pen, to } = view, [lows, highs] = this.box();
    const [a, b] = [to([lows[0], highs[1]]), to([highs[0], lows[1]])];
    pen.fillStyle = jedax.colour("empty");
    pen.fillRect(a[0], a[1], b[0] - a[0], b[1] - a[1]);
    if (this.outlines) this.drawCells(view, values, limits, layer);
    else this.drawDots(view, values, limits, layer, order);
    if (!this.data.scene || this.axes[0] !== 0 || this.axes[1] !== 1) return; // a scene lies in the plane of the first two
    // Thick walls reach beyond the box, where the labels of the axes stand.
    pen.save();
    pen.beginPath();
    pen.rect(a[0] - 3, a[1] - 3, b[0] - a[0] + 6, b[1] - a[1] + 6);
    pen.clip();
    this.drawWalls(view, 2.2, false);
    pen.restore();
  }

  drawCells(view, values, limits, layer) {
    const { pen } = view, edge = jedax.colour("edge");
    const fine = values.length > 3000 || this.dimensions === 1;
    pen.lineWidth = 0.6;
    for (let cell = 0; cell < values.length; cell++) {
      const known = Number.isFinite(values[cell]);
      this.trail(view, this.outlines[cell]);
      pen.closePath();
      pen.fillStyle = known ? this.shade(values[cell], limits, layer) : jedax.emptyColour;
      pen.fill();
      pen.strokeStyle = fine ? pen.fillStyle : edge;
      pen.stroke();
    }
  }

  drawDots({ pen, to, width }, values, limits, layer, order) {
    const size = Math.max(2.5, Math.min(9, (width * 0.42) / Math.sqrt(values.length)));
    for (const cell of order) {
      const known = Number.isFinite(values[cell]);
      const [x, y] = to(this.place(cell));
      pen.beginPath();
      pen.arc(x, y, known ? size : size / 2, 0, 2 * Math.PI);
      pen.fillStyle = known ? this.shade(values[cell], limits, layer) : jedax.colour("line");
      pen.fill();
    }
  }

  drawWalls({ pen, to }, thin, filled) {
    const { walls, wall_width: thick, start, target, target_radius: radius } = this.data.scene;
    const width = Math.max(thin, to([thick, 0])[0] - to([0, 0])[0]);
    pen.lineCap = "round";
    pen.beginPath();
    for (const [x1, y1, x2, y2] of walls) { pen.moveTo(...to([x1, y1])); pen.lineTo(...to([x2, y2])); }
    if (!filled) this.stroke(pen, [width + 3, jedax.colour("edge")]);
    this.stroke(pen, [width, jedax.colour("wall")]);
    if (target) {
      const [x, y] = to(target), edge = to([target[0] + radius, target[1]]);
      pen.beginPath();
      pen.arc(x, y, Math.max(5, edge[0] - x), 0, 2 * Math.PI);
      pen.strokeStyle = pen.fillStyle = jedax.colour("goal");
      pen.lineWidth = 2;
      if (filled) pen.fill();
      pen.stroke();
    }
    if (start) this.dot(pen, to(start), 5, jedax.colour("path"));
  }

  // Begins a path through points of the space.
  trail({ pen, to }, points) {
    pen.beginPath();
    points.forEach((point) => pen.lineTo(...to(point)));
  }

  // Strokes a path with several lines, each of a width and a colour.
  stroke(pen, ...lines) {
    for (const [width, colour] of lines) {
      pen.lineWidth = width;
      pen.strokeStyle = colour;
      pen.stroke();
    }
  }

  dot(pen, [x, y], radius, colour, hollow = false) {
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    pen.fillStyle = hollow ? "#ffffff" : colour;
    pen.fill();
    this.stroke(pen, hollow ? [2.5, colour] : [1.5, "#ffffff"]);
  }

  cross(pen, [x, y], size, colour) {
    pen.lineCap = "round";
    pen.beginPath();
    pen.moveTo(x - size, y - size); pen.lineTo(x + size, y + size);
    pen.moveTo(x - size, y + size); pen.lineTo(x + size, y - size);
    this.stroke(pen, [5, "#ffffff"], [2.6, colour]);
  }

  star(pen, [x, y], size, colour) {
    pen.beginPath();
    for (let corner = 0; corner < 10; corner++) {
      const radius = corner % 2 ? size * 0.42 : size, angle = -Math.PI / 2 + (corner * Math.PI) / 5;
      pen.lineTo(x + radius * Math.cos(angle), y + radius * Math.sin(angle));
    }
    pen.closePath();
    pen.lineJoin = "round";
    this.stroke(pen, [3, "#ffffff"]);
    pen.fillStyle = colour;
    pen.fill();
  }

  drawBest({ pen, to }) {
    if (this.now.best.cell === null || this.now.best.descriptor.includes(null)) return;
    const { lows, highs } = this.data.space; // beyond them its cell is at the edge
    const place = this.now.best.descriptor.map((value, axis) => Math.min(highs[axis], Math.max(lows[axis], value)));
    this.star(pen, to(this.dimensions === 1 ? [place[0], 0.5] : [place[this.axes[0]], place[this.axes[1]]]), 10, jedax.colour("stop"));
  }

  // One ES of one loop: where it was sent, where it started, where it got to.
  es(loop, number) {
    const loops = this.loops, place = loop * loops.pool + number;
    const axes = this.dimensions === 1 ? [0] : this.axes;
    const point = (name) => {
      const found = axes.map((axis) => this.packed(name, axis)[place]);
      return this.dimensions === 1 ? [found[0], 0.5] : found;
    };
    const distance = (name) => Math.hypot(...this.data.space.lows.map((_, axis) => this.packed(name, axis)[place] - this.packed("targets", axis)[place]));
    return {
      target: point("targets"), start: point("starts"), end: point("ends"), before: distance("starts"), after: distance("ends"),
      startFitness: this.packed("start_fitness")[place], endFitness: this.packed("end_fitness")[place],
    };
  }

  packed(name, axis) {
    return this.cached(`loops ${name} ${axis}`, () => jedax.unpack(axis === undefined ? this.loops[name] : this.loops[name][axis]));
  }

  drawLoop(view, loop) {
    const { pen, to } = view;
    for (let number = 0; number < this.loops.pool; number++) {
      const { target, start, end } = this.es(loop, number);
      const colour = jedax.palette[number % jedax.palette.length];
      const ended = Number.isFinite(end[0]);
      const line = (points, dashes) => {
        this.trail(view, points);
        this.stroke(pen, [5, "rgba(255,255,255,.85)"]);
        pen.setLineDash(dashes);
        this.stroke(pen, [2.4, colour]);
        pen.setLineDash([]);
      };
      line([ended ? end : start, target], [3, 5]);
      if (ended) line([start, end], []);
      this.cross(pen, to(target), 6, colour);
      this.dot(pen, to(start), 5, colour, true);
      if (ended) this.dot(pen, to(end), 6, colour);
    }
  }

  // Marks the chosen cell and the one under the pointer, on the map as it was drawn.
  outlineCells() {
    jedax.paste(this.view.pen, this.drawn);
    this.outlineCell(this.hover, 1.5);
    this.outlineCell(this.cell, 3);
  }

  outlineCell(cell, width) {
    if (cell === null) return;
    const { view } = this, { pen, to } = view;
    this.trail(view, this.outlines ? this.outlines[cell] : []);
    if (!this.outlines) pen.arc(...to(this.place(cell)), 9, 0, 2 * Math.PI);
    pen.closePath();
    this.stroke(pen, [width + 2, "#ffffff"], [width, "#111111"]);
  }

  // The room around a box for the numbers of its axes.
  margins(canvas, lows, highs) {
    const pen = canvas.getContext("2d"), hasNumbers = this.dimensions > 1 || canvas === this.scene; // left of the box
    pen.font = jedax.FONT;
    const widths = (hasNumbers ? [lows[1], highs[1]] : []).map((value) => Math.ceil(pen.measureText(this.told(value, lows[1], highs[1])).width));
    return { left: Math.max(34, ...widths.map((width) => width + 6)), bottom: 30, gap: 6 };
  }

  axis({ pen, height, width, left, bottom }, lows, highs, names = null) {
    const { space } = this.data;
    const [across, up] = names || (this.dimensions === 1 ? [space.names[0], ""] : this.axes.map((axis) => space.names[axis]));
    const text = (value, axis) => this.told(value, lows[axis], highs[axis]), wide = (value) => pen.measureText(text(value, 0)).width + 8;
    jedax.write(pen, text(lows[0], 0), left, height - bottom + 5, "left", "top");
    jedax.write(pen, text(highs[0], 0), width - 6, height - bottom + 5, "right", "top");
    const from = left + wide(lows[0]), until = width - 6 - wide(highs[0]); // between the numbers
    jedax.write(pen, jedax.shortened(pen, across, until - from), (from + until) / 2, height - bottom + 8, "center", "top");
    if (!up) return;
    for (const [value, y, baseline] of [[lows[1], height - bottom, "bottom"], [highs[1], 6, "top"]])
      jedax.write(pen, text(value, 1), left - 5, y, "right", baseline);
    pen.save();
    pen.translate(11, (height - bottom) / 2);
    pen.rotate(-Math.PI / 2);
    jedax.write(pen, jedax.shortened(pen, up, height - bottom - 40), 0, 0, "center", "middle");
    pen.restore();
  }

  drawScale([low, high, lowest]) {
    const { map, reversed } = jedax.LAYERS[this.layer];
    const scale = document.getElementById("scale"), colours = this.data.maps[map];
    scale.width = colours.length;
    const pen = scale.getContext("2d");
    colours.forEach((colour, place) => {
      pen.fillStyle = colour;
      pen.fillRect(reversed ? colours.length - 1 - place : place, 0, 1, 1);
    });
    const unit = this.layer === "improved" ? " evaluations" : "";
    const { values } = this.shown(), any = values.some(Number.isFinite);
    document.getElementById("scale-low").textContent = any ? `${lowest < low ? "≤ " : ""}${jedax.number(low)}` : "";
    document.getElementById("scale-high").textContent = any ? jedax.number(high) + unit : "";
    document.querySelector(".scale .empty").hidden = values.every(Number.isFinite);
  }

  // What is known of one cell at the end of the search, name by name.
  facts(cell) {
    const filled = Number.isFinite(this.values("fitness")[cell]);
    const { lows, highs } = this.data.space, told = (values, axis) => this.told(values[cell], lows[axis], highs[axis]);
    const place = (name, axis) => (filled ? [name, told(this.descriptor(axis), axis)] : [`centre, ${name}`, told(this.centroids[axis], axis)]);
    const facts = [["cell", String(cell)], ["fitness", filled ? jedax.number(this.values("fitness")[cell]) : "empty"], ...this.data.space.names.map(place)];
    facts.push(["evaluations here", jedax.number(this.values("counts")[cell] || 0)]);
    if (this.now.layers.gp_mean) facts.push(["GP mean", jedax.number(this.values("gp_mean")[cell])], ["GP standard deviation", jedax.number(this.values("gp_std")[cell])]);
    if (this.now.layers.rank) facts.push(["Pareto rank", jedax.number(this.values("rank")[cell])]);
    if (filled) facts.push(["last improved at", `${jedax.number(this.values("improved")[cell])} evaluations`]);
    return [...facts, ...this.parameters(cell)];
  }

  // Name and value of each parameter of a cell's solution.
  parameters(cell) {
    const known = this.now.parameters, row = known && known.rows[known.cells.indexOf(cell)];
    const told = (value) => (["string", "boolean"].includes(typeof value) ? String(value) : jedax.number(value));
    return row ? known.names.map((name, place) => [name, told(row[place])]) : [];
  }

  descriptor(axis) {
    return this.cached(`descriptor ${axis}`, () => jedax.unpack(this.now.descriptors[axis]));
  }

  // The line of a cell's solution: one point in `every` was kept.
  trace(cell) {
    const asked = this.asked.get(this.solution(cell))?.traces, traces = asked || this.now.traces;
    const place = traces ? traces.cells.indexOf(cell) : -1;
    if (place < 0) return null;
    const points = (asked ? this.split(asked) : this.cached("traces", () => this.split(traces)))[place];
    const episode = this.data.episodes?.kind === "way" && this.episode(cell);
    const every = episode ? Math.ceil(episode.length / episode.steps.length) : cell === traces.whole ? 1 : traces.every;
    return { points, every, joints: traces.joints, ...traces.endings[traces.ends[place]] };
  }

  // The episode of a cell's solution.
  episode(cell) {
    const { episodes } = this.now, asked = this.asked.get(this.solution(cell));
    if (asked) return jedax.episodes(asked.episodes, this.data.episodes).get(cell);
    return (episodes && this.cached("episodes", () => jedax.episodes(episodes, this.data.episodes)).get(cell)) || null;
  }

  // What tells the solution of a cell from one that takes its place while the run goes on.
  solution(cell) {
    return `${this.replica} ${cell} ${this.values("fitness")[cell]} ${this.values("improved")[cell]}`;
  }

  // Lets the solution of the chosen cell act, where `jedax view` serves the page.
  async act() {
    const { cell, replica } = this, solution = this.solution(cell);
    this.acting.add(solution);
    this.troubles.delete(solution);
    this.drawDetail();
    const answer = await fetch(`episode.json?replica=${replica}&cell=${cell}`).catch(() => null);
    if (answer?.ok) this.asked.set(solution, await answer.json());
    else this.troubles.set(solution, answer ? await answer.text() : "jedax view has stopped.");
    this.acting.delete(solution);
    this.drawDetail();
  }

  drawDetail() {
    const cell = this.cell;
    const list = document.getElementById("values");
    this.writeTitle();
    list.replaceChildren();
    if (cell === null) return;
    const trace = this.trace(cell);
    for (const [name, value] of this.facts(cell)) {
      const item = jedax.element("div");
      item.append(jedax.element("dt", name), jedax.element("dd", value));
      list.append(item);
    }
    const drawable = Boolean(this.now.traces) || this.data.episodes?.kind === "way", episode = this.episode(cell), csv = document.getElementById("path-csv");
    document.getElementById("scene-frame").hidden = !drawable;
    document.getElementById("scene-legend").hidden = !drawable || !trace;
    csv.hidden = !trace && !episode;
    csv.textContent = `CSV of this ${episode ? "episode" : "path"}`;
    this.drawEpisode(cell, episode);
    if (drawable) this.drawScene(cell, trace);
    this.writeCommand(cell);
  }

  writeTitle() {
    const title = this.cell === null ? "No solution" : this.cell === this.now.best.cell ? "The best solution's cell" : `Solution of cell ${this.cell}`;
    document.getElementById("detail-title").textContent = title + (this.loop === null ? "" : ", at the end of the search");
  }

  drawEpisode(cell, episode) {
    const about = this.data.episodes;
    const frame = document.getElementById("episode-frame"), note = document.getElementById("episode-note");
    frame.hidden = !episode;
    note.hidden = !about;
    if (!about) return;
    const live = Boolean(jedax.live), filled = Number.isFinite(this.values("fitness")[cell]);
    const acts = this.acting.has(this.solution(cell)), trouble = this.troubles.get(this.solution(cell));
    document.getElementById("act").hidden = !live || !filled || acts || Boolean(episode) || Boolean(about.missing);
    if (!filled) note.textContent = "This cell is empty: no solution behaved so.";
    else if (about.missing) note.textContent = `Its solution cannot act again here: ${about.missing}`;
    else if (acts) note.textContent = "It acts; the first time takes longest …";
    else if (trouble) note.textContent = trouble;
    else if (!episode && live) note.textContent = "While this page follows the run, solutions act when they are asked to.";
    else if (!episode) note.textContent = `Its solution has not acted again, to keep this page quick to make and small. ${this.data.replay ? "The command below shows it." : "A higher --trace-seconds of jedax report may bring it."}`;
    else {
      const text = (note.textContent = jedax.episodeText(episode, about, this.values("fitness")[cell]));
      const canvas = document.getElementById("episode");
      jedax.drawEpisode(canvas, episode, about);
      canvas.setAttribute("aria-label", `Line of the return over the steps of the episode${about.feet.length ? ", and bars that show when each foot is on the floor" : ""}. ${text}`);
    }
  }

  // A number between two ends, with three digits, or more where these begin with the same ones.
  told(value, low, high) {
    const digits = 3 + Math.max(0, Math.ceil(Math.log10(Math.max(Math.abs(low), Math.abs(high)) / (high - low))));
    return jedax.number(Number(value.toPrecision(Math.min(digits, 15))), digits);
  }

  // A descriptor in a hundred thousandth of its range.
  rounded(value, axis) {
    const { lows, highs } = this.data.space, digits = 5 - Math.floor(Math.log10(highs[axis] - lows[axis]));
    return Number(value.toFixed(Math.min(20, Math.max(0, digits))));
  }

  // The command that films the solution of a cell.
  writeCommand(cell) {
    const line = document.getElementById("replay-line"), { replay, replicas, best_replica: first } = this.data;
    line.hidden = !replay || !Number.isFinite(this.values("fitness")[cell]);
    if (line.hidden) return;
    const best = cell === this.now.best.cell;
    const seed = replicas.length > 1 && !(best && this.replica === first) ? ` --seed ${this.now.seed}` : "";
    const place = best ? "" : ` --cell ${this.centroids.map((axis, number) => this.rounded(axis[cell], number)).join(" ")}`;
    document.getElementById("replay-command").textContent = replay + place + seed;
  }

  // The box that is drawn around a line: that of the scene, or of the descriptors and of the line.
  sceneBox(trace) {
    if (this.data.scene) return this.data.scene.limits;
    const [lows, highs] = this.box();
    if (!trace) return [lows, highs];
    return [lows.map((low, axis) => Math.min(low, ...trace.points.map((point) => point[axis]))), highs.map((high, axis) => Math.max(high, ...trace.points.map((point) => point[axis])))];
  }

  drawScene(cell, trace) {
    const { scene } = this.data, [lows, highs] = this.sceneBox(trace), names = this.data.episodes ? this.data.space.names : ["x", "y"];
    const fitness = this.values("fitness")[cell];
    const view = (this.sceneView = this.frame(this.scene, lows, highs));
    const { pen, to } = view;
    this.axis(view, lows, highs, names);
    if (scene) this.drawWalls(view, 2.5, true);
    let label = "This cell is empty: no solution behaved so.";
    if (!trace && Number.isFinite(fitness)) label = this.data.episodes ? "not shown" : "The path of this cell was left out, to keep the page small.";
    if (trace) {
      pen.lineJoin = pen.lineCap = "round";
      this.trail(view, trace.points);
      this.stroke(pen, [2.2, jedax.colour("path")]);
      const last = to(trace.points.at(-1));
      if (trace.joints) trace.points.forEach((point) => this.dot(pen, to(point), 3.5, jedax.colour("path")));
      this[trace.mark](pen, last, { star: 9, cross: 5, dot: 5 }[trace.mark], jedax.colour("stop"));
      label = `${trace.caption.replace("{cost}", jedax.number(-fitness))}${trace.every > 1 ? ` (one point in ${trace.every} is drawn)` : ""}, fitness ${jedax.number(fitness)}.`;
    } else {
      pen.fillStyle = jedax.colour("soft");
      pen.textAlign = "center";
      pen.fillText(label, view.width / 2, view.height / 2);
    }
    this.scene.setAttribute("aria-label", label);
    const legend = document.getElementById("scene-legend");
    legend.replaceChildren(jedax.element("li", label));
    if (!scene) return;
    const entries = [["●", "path", "start", scene.start], ["●", "goal", "goal", scene.target], [{ star: "★", cross: "✕", dot: "●" }[trace?.mark], "stop", "end", trace]];
    for (const [mark, colour, text] of entries.filter(([, , , there]) => there)) {
      const item = jedax.element("li", ` ${text}`);
      const sign = jedax.element("b", mark, { class: "mark" });
      sign.style.color = jedax.colour(colour);
      item.prepend(sign);
      legend.append(item);
    }
    if (scene.note) legend.append(jedax.element("li", scene.note));
  }

  drawReplay() {
    const { loops } = this;
    document.getElementById("replay").hidden = !loops;
    if (!loops) return;
    const slider = document.getElementById("loop"), table = document.getElementById("loop-table");
    slider.max = loops.evaluations.length;
    slider.value = this.loop === null ? loops.evaluations.length : this.loop;
    const output = document.getElementById("loop-label"), guided = loops.pool > 0;
    table.hidden = this.loop === null || !guided;
    document.getElementById("loop-legend").hidden = !guided;
    document.querySelector("[data-csv=loops]").hidden = !guided;
    if (this.loop === null) {
      output.textContent = `End of the search: ★ marks the best solution. Move the slider to see ${guided ? (loops.evaluations.length === 1 ? "its loop" : `its ${jedax.number(loops.evaluations.length)} loops`) : "how the cells filled"}.`;
      slider.setAttribute("aria-valuetext", "end of the search");
      return;
    }
    if (!guided) {
      output.textContent = `After ${jedax.number(loops.evaluations[this.loop])} evaluations`;
      slider.setAttribute("aria-valuetext", output.textContent);
      return;
    }
    const gp = Object.entries(loops.gp).map(([name, values]) => `GP ${name.replaceAll("_", " ")} ${jedax.number(values[this.loop], 3)}`);
    const number = this.loop * loops.every + 1;
    const text = [`Loop ${jedax.number(number)}`, `${jedax.number(loops.evaluations[this.loop])} to ${jedax.number(loops.until[this.loop])} evaluations`, ...(loops.alpha[this.loop] === null ? [] : [`alpha ${jedax.number(loops.alpha[this.loop], 2)}`]), ...gp].join(" · ");
    output.textContent = text;
    slider.setAttribute("aria-valuetext", text);
    const body = table.tBodies[0];
    body.replaceChildren();
    for (let es = 0; es < loops.pool; es++) {
      const found = this.es(this.loop, es), row = jedax.element("tr"), first = jedax.element("td", String(es + 1));
      const sign = jedax.element("i");
      sign.style.background = jedax.palette[es % jedax.palette.length];
      first.prepend(sign);
      const target = this.dimensions === 1 ? jedax.number(found.target[0], 3) : `(${found.target.map((value) => jedax.number(value, 3)).join(", ")})`;
      row.append(first);
      for (const value of [target, found.startFitness, found.endFitness, found.before, found.after]) row.append(jedax.element("td", typeof value === "string" ? value : jedax.number(value, 4)));
      body.append(row);
    }
  }

  // The map at a few moments of the search, side by side; each leads to its loop.
  drawStrip() {
    const { loops } = this, strip = document.getElementById("strip");
    const last = loops ? loops.evaluations.length - 1 : 0;
    strip.hidden = last < jedax.MOMENTS.length;
    if (strip.hidden) return;
    const limits = this.limits("fitness"), [lows, highs] = this.box();
    [...jedax.MOMENTS.map((share) => Math.round(share * last)), null].forEach((loop, place) => {
      const button = strip.children[place] || strip.appendChild(jedax.element("button", null, { type: "button" }));
      if (!button.firstChild) button.append(jedax.element("canvas", null, { "aria-hidden": "true" }), jedax.element("span"));
      button.onclick = () => this.go(loop === null ? last + 1 : loop);
      const { values, at } = this.shown("fitness", loop);
      const filled = values.reduce((sum, value) => sum + Number.isFinite(value), 0) / values.length;
      button.lastChild.textContent = `${loop === null ? "end: " : "after "}${jedax.number(at)}, ${filled > 0 && filled < 0.005 ? "under 1" : filled >= 0.995 && filled < 1 ? "over 99" : Math.round(100 * filled)} % filled`;
      const view = this.frame(button.firstChild, lows, highs, { left: 1, bottom: 1, gap: 1 });
      this.drawSpace(view, values, limits, "fitness", this.stacked(values));
      if (loop === null) this.drawBest(view);
      else this.drawLoop(view, loop);
    });
  }

  // Fills the choices of the toolbar.
  fill() {
    const layers = document.getElementById("layers"), available = Object.keys(jedax.LAYERS).filter((name) => this.now.layers[name]);
    if (!available.includes(this.layer)) this.layer = "fitness";
    const inputs = () => [...layers.querySelectorAll("input")];
    if (inputs().map((input) => input.value).join() !== available.join()) { // else the keyboard would lose its place
      layers.querySelectorAll("label").forEach((label) => label.remove());
      for (const name of available) {
        const label = jedax.element("label", ` ${jedax.LAYERS[name].name}`);
        label.prepend(jedax.element("input", null, { type: "radio", name: "layer", value: name }));
        layers.append(label);
      }
    }
    for (const input of inputs()) input.checked = input.value === this.layer;
    const option = (value, text) => jedax.element("option", text, { value });
    const replica = document.getElementById("replica"), { replicas, space } = this.data;
    document.getElementById("replica-choice").hidden = replicas.length < 2;
    replica.replaceChildren(...replicas.map((one, place) => option(place, `${one.seed}: best ${jedax.number(one.best.fitness)}`)));
    replica.value = this.replica;
    document.getElementById("axes-choice").hidden = this.dimensions < 3;
    ["axis-x", "axis-y"].forEach((id, place) => {
      const choice = document.getElementById(id);
      choice.replaceChildren(...space.names.map((name, axis) => option(axis, name)));
      choice.value = this.axes[place];
    });
  }

  listen(get) {
    jedax.emptyColour = jedax.colour("empty");
    const choose = (cell) => { if (cell !== null) { this.cell = cell; this.outlineCells(); this.drawDetail(); } };
    // Of cells that lie over each other the next one is chosen each time.
    const isOver = (cell) => cell !== null && this.cell !== null && this.shareAPlace(cell, this.cell);
    const chooseAt = (cell) => choose(isOver(cell) ? this.below(this.cell) : cell);
    this.map.addEventListener("click", (event) => chooseAt(this.cellAt(event)));
    this.map.addEventListener("pointermove", (event) => this.tip(this.cellAt(event), event));
    this.map.addEventListener("pointerleave", () => this.tip(null));
    this.map.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!way && event.key !== "Enter") return;
      event.preventDefault();
      if (way) choose(this.neighbour(way));
      else chooseAt(this.cell);
    });
    get("layers").addEventListener("change", (event) => { this.layer = event.target.value; this.drawMap(); });
    get("replica").addEventListener("change", (event) => {
      this.replica = Number(event.target.value);
      this.stop();
      this.cell = this.now.best.cell;
      this.fill();
      this.draw();
    });
    ["axis-x", "axis-y"].forEach((id, place) => get(id).addEventListener("change", (event) => { this.axes[place] = Number(event.target.value); this.draw(); }));
    get("act").addEventListener("click", () => this.act());
    get("show-best").addEventListener("click", () => choose(this.now.best.cell));
    get("loop").addEventListener("input", (event) => this.go(Number(event.target.value)));
    get("play").addEventListener("click", () => this.play());
    window.addEventListener("hashchange", () => {
      if (!this.data.space) return;
      this.stop();
      this.fromAddress();
      this.fill();
      this.draw();
    });
    let width = this.map.parentElement.clientWidth; // changes with the window, and with a scroll bar
    new ResizeObserver(([{ target }]) => { if (target.clientWidth !== width) { width = target.clientWidth; if (width) this.draw(); } }).observe(this.map.parentElement);
    jedax.onColours(() => { jedax.emptyColour = jedax.colour("empty"); if (this.data) this.draw(); });
  }

  go(loop) {
    this.loop = loop;
    if (loop >= this.loops.evaluations.length) this.stop();
    this.drawMap();
    this.drawReplay();
    this.writeTitle();
  }

  play() {
    if (this.timer) {
      this.pause();
      return;
    }
    if (this.loop === null) this.go(0);
    const pause = Math.max(60, Math.min(700, 20000 / this.loops.evaluations.length));
    this.timer = setInterval(() => this.go(this.loop + 1), pause);
    this.labelPlay();
  }

  // Ends the playback, at the end of the search.
  stop() {
    this.loop = null;
    this.pause();
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.labelPlay();
  }

  labelPlay() {
    const button = document.getElementById("play");
    button.textContent = this.timer ? "⏸" : "▶";
    button.setAttribute("aria-label", this.timer ? "Pause" : "Play");
  }

  // The cell next to the chosen one in a direction.
  neighbour([x, y]) {
    if (this.cell === null) return 0;
    const [lows, highs] = this.box(), here = this.place(this.cell);
    return this.nearest((there) => {
      const [dx, dy] = [0, 1].map((axis) => (there[axis] - here[axis]) / (highs[axis] - lows[axis]));
      const along = dx * x + dy * y, aside = Math.abs(dx * y) + Math.abs(dy * x);
      return along > 1e-6 && aside <= along ? along + 2 * aside : Infinity;
    }) ?? this.cell;
  }

  tip(cell, event) {
    if (cell !== this.hover) { this.hover = cell; this.outlineCells(); }
    const tip = document.getElementById("tip");
    tip.hidden = cell === null;
    if (cell === null) return;
    const facts = this.facts(cell).map(([name, value]) => jedax.element("div", `${name}: ${value}`));
    if (this.loop !== null) {
      const then = this.shown("fitness").values[cell];
      facts.unshift(jedax.element("div", `fitness then: ${Number.isFinite(then) ? jedax.number(then) : "empty"}`), jedax.element("div", "At the end of the search:"));
    }
    tip.replaceChildren(...facts);
    const box = this.map.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    tip.style.left = `${Math.max(0, x + 14 + tip.offsetWidth > box.width ? x - 14 - tip.offsetWidth : x + 14)}px`;
    tip.style.top = `${Math.max(0, y + 14 + tip.offsetHeight > box.height ? y - 10 - tip.offsetHeight : y + 14)}px`;
  }

  cellsCsv() {
    const columns = { cell: [...this.centroids[0].keys()] };
    const own = (name, kind) => (name in columns || name in this.now.layers ? `${kind} ${name}` : name);
    this.data.space.names.forEach((name, axis) => { columns[`centroid ${name}`] = this.centroids[axis]; columns[own(name, "descriptor")] = this.descriptor(axis); });
    for (const layer of Object.keys(this.now.layers)) columns[layer] = this.values(layer);
    const known = this.now.parameters, rows = new Map(known?.cells.map((cell, place) => [cell, known.rows[place]]));
    known?.names.forEach((name, place) => {
      columns[own(name, "parameter")] = columns.cell.map((cell) => rows.get(cell)?.[place] ?? null);
    });
    return columns;
  }

  pathCsv() {
    const { points } = this.trace(this.cell) || { points: [] }, episode = this.episode(this.cell);
    if (episode) return this.episodeCsv(episode, points);
    return { point: [...points.keys()], x: points.map((point) => point[0]), y: points.map((point) => point[1]) };
  }

  // A row for each step; the return, and the place, only where this page holds them.
  episodeCsv(episode, points) {
    const columns = { step: [...Array(episode.length).keys()].map((step) => step + 1), return: Array(episode.length).fill(null) };
    const ways = points.length ? this.data.space.names.map((name) => (columns[name] = Array(episode.length).fill(null))) : [];
    episode.steps.forEach((step, place) => {
      columns.return[step - 1] = episode.returns[place];
      // A way may begin with where the robot started.
      ways.forEach((way, axis) => { way[step - 1] = points[points.length - episode.steps.length + place][axis]; });
    });
    this.data.episodes.feet.forEach((foot, place) => (columns[foot] = [...episode.contacts[place]]));
    return columns;
  }

  loopsCsv() {
    const { loops } = this, { names } = this.data.space, rows = [];
    loops.evaluations.forEach((evaluations, loop) => {
      for (let es = 0; es < loops.pool; es++) {
        const place = loop * loops.pool + es;
        const row = { loop: loop * loops.every + 1, evaluations, until: loops.until[loop], alpha: loops.alpha[loop], es: es + 1,
          start_fitness: this.packed("start_fitness")[place], end_fitness: this.packed("end_fitness")[place] };
        for (const gp of Object.keys(loops.gp)) row[`gp_${gp}`] = loops.gp[gp][loop];
        for (const what of ["target", "start", "end"]) names.forEach((name, axis) => (row[`${what} ${name}`] = this.packed(`${what}s`, axis)[place]));
        rows.push(row);
      }
    });
    return jedax.columns(rows);
  }
};
