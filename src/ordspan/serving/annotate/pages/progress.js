// The progress page, updated every ten seconds.
import { drawError } from "./chart.js";
import { call, find, make } from "./talk.js";

const SECONDS = 10;
const ROWS = 40; // of the table next to the chart

let last = "";

const number = (value, digits = 2) =>
  value === null || value === undefined ? "–"
    : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
const whole = value => number(value, 0);
const percent = share => (share === null || share === undefined ? "–" : `${whole(100 * share)}\u00a0%`);
const count = (n, one, many = `${one}s`) => `${whole(n)} ${n === 1 ? one : many}`;

function tile(label, value, note = "") {
  return make("div", "", make("dt", "", label), make("dd", "", value, " ", make("small", "", note)));
}

function drawTiles(seen) {
  const { coverage } = seen;
  find("tiles").replaceChildren(
    tile("Items answered", whole(seen.items_answered), `of ${whole(seen.items)}`),
    tile("Answers", whole(seen.answers), seen.skips ? `and ${count(seen.skips, "skip")}` : ""),
    tile("Answers per minute", number(seen.per_minute, 1), seen.minutes ? `in ${number(seen.minutes, 1)} minutes` : ""),
    tile("Answers that are ranges", percent(seen.range_share),
      seen.mean_width === null ? "" : `${number(seen.mean_width, 1)} grades per answer on average`),
    tile("Answers inside the guess", coverage ? percent(coverage.contains) : "–",
      coverage ? `target: ${percent(coverage.asked)}; overlapping it: ${percent(coverage.meets)}` : "no guess yet"),
  );
}

function drawErrors({ error, best_constant: constant, advice }) {
  const now = error.at(-1);
  find("advice").textContent = advice;
  find("advice").hidden = !advice;
  find("error-figure").hidden = !now;
  if (!now) {
    find("error-words").textContent = "Half of the items are chosen at random. Once some are answered, this shows how far the model's guess, made before learning the answer, is from it.";
    return;
  }
  const band = now.low === null ? "" : ` (between ${number(now.low)} and ${number(now.high)})`;
  const rival = constant === null ? "" : ` The best constant grade would be off by ${number(constant)}.`;
  find("error-words").textContent = `After ${count(now.answers, "answer")} the model is off by ${number(now.mae)} grades on average${band}.${rival}`;
  find("constant-key").hidden = constant === null;
  drawError(find("chart"), error, constant);
  const every = Math.ceil(error.length / ROWS);
  const rows = error.filter((_, at) => (error.length - 1 - at) % every === 0);
  find("error-rows").replaceChildren(...rows.map(point =>
    row(whole(point.answers), number(point.mae), number(point.low), number(point.high))));
}

function row(head, ...cells) {
  const first = make("th", "", make("bdi", "", head));
  first.scope = "row";
  return make("tr", "", first, ...cells.map(cell => make("td", "", cell)));
}

function drawAnnotators({ annotators }) {
  find("annotators-empty").hidden = annotators.length > 0;
  find("annotators-table").hidden = annotators.length === 0;
  find("annotator-rows").replaceChildren(...annotators.map(one =>
    row(one.name, whole(one.answers), whole(one.skips), number(one.per_minute, 1),
      percent(one.range_share), number(one.mean_width, 1))));
}

function agreementWords({ items, pairs, same, meet, gap }) {
  if (!pairs) return "No item has been answered by two people yet. This shows how well people agree on the same item.";
  const seen = `${count(items, "item")} ${items === 1 ? "was" : "were"} answered by several people`;
  return `${seen} (${count(pairs, "pair")} of answers): ${percent(same)} are identical, ${percent(meet)} share a grade, and the mean gap is ${number(gap)} grades.`;
}

function anchoringWords({ shown, hidden }, guess) {
  const always = { show: "shown", hide: "hidden" }[guess];
  if (always && (!shown.n || !hidden.n)) return `The guess is ${always} for all items, so this cannot be measured. By default it is hidden for a random half of them.`;
  if (!shown.n || !hidden.n) return `The guess is hidden for a random half of the items. This compares both halves once each has answers; so far ${whole(shown.n)} with the guess shown and ${whole(hidden.n)} with it hidden.`;
  return `Answers are ${number(shown.distance)} grades from the guess when it was shown (${count(shown.n, "answer")}) and ${number(hidden.distance)} grades when it was hidden (${count(hidden.n, "answer")}).`;
}

function draw(seen) {
  drawTiles(seen);
  drawErrors(seen);
  drawAnnotators(seen);
  find("agreement").textContent = agreementWords(seen.agreement);
  find("anchoring").textContent = anchoringWords(seen.anchoring, seen.guess);
}

async function refresh() {
  try {
    const seen = await call("/api/progress");
    const text = JSON.stringify(seen);
    if (text !== last) draw(seen);
    last = text;
    find("trouble").textContent = "";
    find("fresh").textContent = `As of ${new Date().toLocaleTimeString()}; updates every ${SECONDS} seconds.`;
  } catch (error) {
    find("trouble").textContent = `${error.message} Trying again every ${SECONDS} seconds.`;
  }
  setTimeout(refresh, SECONDS * 1000);
}

new ResizeObserver(() => last && drawErrors(JSON.parse(last))).observe(find("main"));
refresh();
