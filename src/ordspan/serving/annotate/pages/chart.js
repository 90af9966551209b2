// The error over the number of answers, with its band, as SVG.
const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 280;
const MARGIN = { left: 44, right: 12, top: 12, bottom: 44 };

function add(parent, tag, attributes = {}, text = "") {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  parent.append(element);
  return element;
}

/** Round numbers from 0 to at least `top`, about `n` of them. */
export function ticks(top, n) {
  const rough = top / n;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find(nice => nice * power >= rough) * power;
  return Array.from({ length: Math.ceil(top / step - 1e-9) + 1 }, (_, at) => at * step);
}

export function drawError(place, points, constant) {
  const width = Math.max(260, place.clientWidth);
  const svg = document.createElementNS(SVG, "svg");
  const words = { width, height: HEIGHT, role: "img", "aria-labelledby": "error-heading", "aria-describedby": "error-words" };
  for (const [name, value] of Object.entries(words)) svg.setAttribute(name, value);

  const highest = Math.max(...points.map(point => point.mae), constant ?? 0, 0.1);
  const up = ticks(1.15 * highest, 4);
  const along = ticks(Math.max(points.at(-1).answers, 4), width < 500 ? 4 : 8).filter(Number.isInteger);
  const [top, right] = [up.at(-1), Math.max(points.at(-1).answers, 4)];
  const x = answers => MARGIN.left + (answers / right) * (width - MARGIN.left - MARGIN.right);
  const y = error => HEIGHT - MARGIN.bottom - (error / top) * (HEIGHT - MARGIN.top - MARGIN.bottom);

  for (const error of up) {
    add(svg, "line", { class: "grid", x1: x(0), x2: x(right), y1: y(error), y2: y(error) });
    add(svg, "text", { x: x(0) - 8, y: y(error) + 4, "text-anchor": "end" }, String(+error.toFixed(6)));
  }
  for (const answers of along.filter(answers => answers <= right)) {
    add(svg, "text", { x: x(answers), y: y(0) + 20, "text-anchor": "middle" }, String(answers));
  }
  add(svg, "text", { x: x(right / 2), y: HEIGHT - 6, "text-anchor": "middle" }, "answers to items asked at random");

  const inside = value => Math.min(top, Math.max(0, value));
  const banded = points.filter(point => point.low !== null && point.high !== null);
  const edge = [...banded.map(point => [x(point.answers), y(inside(point.high))]),
    ...banded.toReversed().map(point => [x(point.answers), y(inside(point.low))])];
  add(svg, "polygon", { class: "band", points: edge.join(" ") });
  if (constant !== null) {
    add(svg, "line", { class: "dashes", x1: x(0), x2: x(right), y1: y(constant), y2: y(constant) });
  }
  const line = points.map(point => [x(point.answers), y(point.mae)]);
  add(svg, "polyline", { class: "line", points: line.join(" ") });
  const [endX, endY] = line.at(-1);
  add(svg, "circle", { class: "dot", cx: endX, cy: endY, r: 4.5 });
  place.replaceChildren(svg);
}
