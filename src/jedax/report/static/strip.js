"use strict";
// The map at a few moments of the search, side by side; each leads to its loop.

jedax.MOMENTS = [0, 0.12, 0.35, 0.65];

jedax.drawStrip = (explorer) => {
  const { loops } = explorer, strip = document.getElementById("strip");
  const last = loops ? loops.evaluations.length - 1 : 0;
  strip.hidden = last < jedax.MOMENTS.length;
  if (strip.hidden) return;
  const moments = [...jedax.MOMENTS.map((share) => Math.round(share * last)), null];
  const limits = explorer.limits("fitness"), [lows, highs] = explorer.box();
  moments.forEach((loop, place) => {
    const button = strip.children[place] || strip.appendChild(jedax.element("button", null, { type: "button" }));
    if (!button.firstChild) button.append(jedax.element("canvas", null, { "aria-hidden": "true" }), jedax.element("span"));
    button.onclick = () => explorer.go(loop === null ? last + 1 : loop);
    const { values, at } = explorer.shown("fitness", loop);
    const filled = values.reduce((sum, value) => sum + Number.isFinite(value), 0) / values.length;
    button.lastChild.textContent = `${loop === null ? "end: " : "after "}${jedax.number(at)}, ${Math.round(100 * filled)} % filled`;
    const view = explorer.frame(button.firstChild, lows, highs, { left: 1, bottom: 1, gap: 1 });
    explorer.drawSpace(view, values, limits, "fitness");
    if (loop === null) explorer.drawBest(view);
    else explorer.drawLoop(view, loop);
  });
};
