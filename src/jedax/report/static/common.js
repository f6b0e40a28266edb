"use strict";
// What the pages share: unpacking numbers, writing them, colours, CSV files, charts.
const jedax = {};

jedax.unpack = (packed) => {
  if (packed === null || packed === undefined) return null;
  if (Array.isArray(packed)) return packed.map((value) => (value === null ? NaN : value));
  const bytes = Uint8Array.from(atob(packed.data), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const values = new Float64Array(bytes.length / 2);
  for (let place = 0; place < values.length; place++) {
    const code = view.getUint16(2 * place, true);
    const share = code / 65534;
    values[place] = code === 65535 || packed.low === null ? NaN : packed.low * (1 - share) + packed.high * share;
  }
  packed.others?.places.forEach((place, number) => { values[place] = packed.others.values[number]; });
  return values;
};

jedax.number = (value, digits = 4) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e10) return value.toLocaleString("en");
  if (size !== 0 && (size >= 1e7 || size < 1e-4)) return value.toExponential(2);
  const decimals = size === 0 ? 0 : Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  return value.toLocaleString("en", { maximumFractionDigits: decimals, minimumFractionDigits: 0 });
};

// Where a scale begins: at the lowest value, or above a few far below all others; as in numbers.py.
jedax.lowestShown = (values, ratio = 10) => {
  const known = Float64Array.from(values.filter((value) => value !== null && Number.isFinite(value))).sort();
  let low = known[0];
  for (let place = 1; place <= known.length / 2; place++) {
    const range = known.at(-1) - known[place];
    if (range > 0 && known[place] - known[place - 1] > ratio * range) low = known[place];
  }
  return { low, lowest: known[0], high: known.at(-1) };
};

// The ends of linear colours, of which a few failed solutions do not take the most.
jedax.colourLimits = (values) => {
  const known = Float64Array.from(values.filter((value) => value !== null && Number.isFinite(value))).sort();
  const { low, lowest, high } = jedax.lowestShown(values);
  const quartile = known[Math.floor((known.length - 1) / 4)];
  if (!(quartile < high)) return { low, lowest, high };
  const fence = quartile - 3 * (high - quartile);
  return { low: Math.max(low, known.find((value) => value >= fence)), lowest, high };
};

// A chart's y axis that begins at the lowest value shown, and what says so; nothing where all is shown.
jedax.cutAxis = (values) => {
  const { low, lowest, high } = jedax.lowestShown(values, 1000);
  if (!(lowest < low)) return { yaxis: {}, annotations: [] };
  const text = `cut off below: down to ${jedax.number(lowest)}`;
  const annotation = { xref: "paper", yref: "paper", x: 0.01, y: 0.01, text, showarrow: false, xanchor: "left", yanchor: "bottom", bgcolor: jedax.colour("paper") };
  return { yaxis: { range: [low - 0.15 * (high - low), high + 0.05 * (high - low)] }, annotations: [annotation] };
};

jedax.colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// Okabe & Ito, safe for colour-blind readers.
jedax.palette = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8c6bb1", "#777777"];

jedax.element = (tag, text, attributes = {}) => {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
};

jedax.FONT = "12px system-ui, sans-serif";

// A picture of a canvas, and the canvas with that picture again.
jedax.copy = (canvas) => {
  const copy = jedax.element("canvas", null, { width: canvas.width, height: canvas.height });
  copy.getContext("2d").drawImage(canvas, 0, 0);
  return copy;
};

jedax.paste = (pen, copy) => {
  pen.save();
  pen.resetTransform();
  pen.clearRect(0, 0, copy.width, copy.height);
  pen.drawImage(copy, 0, 0);
  pen.restore();
};

// Sizes a canvas to what holds it, and returns its cleared pen, whose unit is a pixel of the page.
jedax.pen = (canvas, heightOf) => {
  const width = Math.max(160, canvas.parentElement.clientWidth), height = heightOf(width), scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = jedax.FONT;
  return { pen, width, height };
};

jedax.write = (pen, text, x, y, align, baseline, colour = "soft") => {
  pen.textAlign = align;
  pen.textBaseline = baseline;
  pen.fillStyle = jedax.colour(colour);
  pen.fillText(text, x, y);
};

// A text that is as wide as the room that it has, with an ellipsis for what is left out.
jedax.shortened = (pen, text, room) => {
  if (pen.measureText(text).width <= room) return text;
  const letters = [...text];
  while (letters.length && pen.measureText(`${letters.join("")}…`).width > room) letters.pop();
  return `${letters.join("")}…`;
};

// Columns by name, from rows with the same names.
jedax.columns = (rows) => Object.fromEntries(Object.keys(rows[0] || {}).map((name) => [name, rows.map((row) => row[name])]));

jedax.csv = (name, columns) => {
  const cell = (value) => {
    if (value === null || value === undefined || Number.isNaN(value)) return "";
    let text = String(value);
    // A name that a spreadsheet would take for a formula.
    if (typeof value === "string" && /^[=+\-@]/.test(text)) text = `'${text}`;
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const names = Object.keys(columns);
  const length = Math.max(0, ...names.map((column) => columns[column].length));
  const lines = [names.map(cell).join(",")];
  for (let row = 0; row < length; row++) lines.push(names.map((column) => cell(columns[column][row])).join(","));
  jedax.save(name, `${lines.join("\n")}\n`);
};

jedax.save = (name, text) => {
  const link = jedax.element("a", "", { download: name });
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};

jedax.layout = (title, extra = {}) => {
  const ink = jedax.colour("ink");
  const axis = { gridcolor: jedax.colour("line"), zeroline: false, linecolor: jedax.colour("line"), automargin: true };
  const { xaxis = {}, yaxis = {}, ...rest } = extra;
  const top = title ? 44 : 16;
  return {
    title: { text: jedax.plain(title), font: { size: 14, weight: 600 }, x: 0, xanchor: "left", xref: "container", pad: { l: 4 }, yref: "container", y: 0.97, yanchor: "top" },
    font: { family: "system-ui, sans-serif", size: 12, color: ink },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 56, r: 14, t: top, b: 44 }, hovermode: "closest", showlegend: false,
    xaxis: { ...axis, ...xaxis }, yaxis: { ...axis, ...yaxis }, ...rest,
  };
};

// Plotly reads a little HTML in texts, and fills in numbers: names are shown as they are.
jedax.plain = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("%{", "&#37;{");

jedax.chart = (place, traces, layout, label) => {
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", label);
  const hasRoom = window.innerWidth > 600 && window.matchMedia("(hover: hover)").matches;  // else buttons hide titles
  const buttons = { displayModeBar: hasRoom ? "hover" : false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };
  const config = { displaylogo: false, responsive: true, ...buttons };
  return Plotly.react(place, traces, layout, config);
};

jedax.onColours = (draw) => {
  for (const query of ["(prefers-color-scheme: dark)", "print"]) window.matchMedia(query).addEventListener("change", draw);
};

// Runs what draws charts once their library is there; the page shows the rest before that.
jedax.withCharts = (draw) => {
  const start = () => {
    const held = document.getElementById("plotly"), script = document.createElement("script");
    if (held.dataset.path) {
      script.addEventListener("load", draw);
      script.addEventListener("error", () => {
        const note = document.createElement("p");
        note.setAttribute("role", "alert");
        note.textContent = `This page draws its charts with ${held.dataset.path}, which is not there: keep both files together.`;
        document.querySelector("main, body").prepend(note);
      });
      script.src = held.dataset.path;
    } else script.textContent = held.textContent;
    document.head.append(script);
    if (!held.dataset.path) draw();
  };
  window.addEventListener("load", () => setTimeout(start, 30));
};

jedax.read = () => JSON.parse(document.getElementById("data").textContent);
