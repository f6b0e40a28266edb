"use strict";
// Episodes of policies: the return as it grows, and which feet are on the floor.

// The episodes of one replica, by cell.
jedax.episodes = (packed, { feet, most_points: most }) => {
  const returns = jedax.unpack(packed.returns);
  const bytes = packed.contacts ? Uint8Array.from(atob(packed.contacts), (letter) => letter.charCodeAt(0)) : null;
  const found = new Map();
  let point = 0, bit = 0;
  packed.cells.forEach((cell, place) => {
    const length = packed.lengths[place], every = Math.max(1, Math.ceil(length / most)), steps = [];
    for (let step = every; step < length; step += every) steps.push(step);
    steps.push(length);
    const contacts = feet.map(() => new Uint8Array(length));
    if (bytes)
      for (let step = 0; step < length; step++)
        for (const mine of contacts) { mine[step] = (bytes[bit >> 3] >> (bit & 7)) & 1; bit += 1; }
    const shares = contacts.map((mine) => mine.reduce((sum, one) => sum + one, 0) / length);
    found.set(cell, { length, steps, returns: returns.slice(point, point + steps.length), contacts, shares, departs: packed.departs.includes(cell) });
    point += steps.length;
  });
  return found;
};

// An episode in words.
jedax.episodeText = (episode, { feet, why }, fitness) => {
  const parts = [`Return ${jedax.number(episode.returns.at(-1))} after ${jedax.number(episode.length)} steps`];
  feet.forEach((foot, place) => parts.push(`${foot} on the floor in ${Math.round(100 * episode.shares[place])} % of them`));
  const departs = episode.departs ? ` The run recorded fitness ${jedax.number(fitness)}: ${why}.` : "";
  return `${parts.join(", ")}.${departs}`;
};

// Draws the return over the steps, and below it a row for each foot, dark while it is on the floor.
jedax.drawEpisode = (canvas, episode, { feet }) => {
  const left = 52, right = 10, top = 22, curve = 150, row = 34;
  const { pen, width } = jedax.pen(canvas, () => top + curve + 14 + row * feet.length + 36);
  const across = (step) => left + (step / episode.length) * (width - left - right);
  const [low, high] = [Math.min(0, ...episode.returns), Math.max(0, ...episode.returns)];
  const up = (value) => top + curve * (1 - (value - low) / (high - low || 1));
  jedax.write(pen, "return so far", left, top - 7, "left", "bottom", "ink");
  pen.lineWidth = 1;
  const marked = [low, high].filter((value) => value === 0 || Math.abs(up(value) - up(0)) > 14);
  for (const value of new Set([0, ...marked])) {
    pen.strokeStyle = jedax.colour(value === 0 ? "soft" : "line");
    pen.beginPath();
    pen.moveTo(left, up(value)); pen.lineTo(width - right, up(value));
    pen.stroke();
    jedax.write(pen, jedax.number(value, 3), left - 6, up(value), "right", "middle");
  }
  pen.strokeStyle = jedax.colour("path");
  pen.lineWidth = 2.2;
  pen.lineJoin = "round";
  pen.beginPath();
  pen.moveTo(across(0), up(0));
  episode.steps.forEach((step, place) => pen.lineTo(across(step), up(episode.returns[place])));
  pen.stroke();
  let y = top + curve + 14;
  feet.forEach((foot, place) => {
    jedax.write(pen, foot, left, y + 13, "left", "bottom", "ink");
    jedax.write(pen, `${Math.round(100 * episode.shares[place])} % on the floor`, width - right, y + 13, "right", "bottom", "ink");
    pen.fillStyle = jedax.colour("empty");
    pen.fillRect(left, y + 16, width - left - right, 12);
    pen.fillStyle = jedax.colour("path");
    const contacts = episode.contacts[place];
    for (let from = 0; from < episode.length; from++) {
      if (!contacts[from]) continue;
      let until = from;
      while (until < episode.length && contacts[until]) until++;
      pen.fillRect(across(from), y + 16, across(until) - across(from), 12);
      from = until;
    }
    y += row;
  });
  jedax.write(pen, "0", left, y + 4, "left", "top");
  jedax.write(pen, "step", (left + width - right) / 2, y + 4, "center", "top");
  jedax.write(pen, jedax.number(episode.length), width - right, y + 4, "right", "top");
};
