// The annotation page: one item, one scale, and keyboard shortcuts for everything.
import { showItem } from "./item.js";
import { Scale } from "./scale.js";
import { deliver, find, make, newKey } from "./talk.js";

const NAME = "ordspan.annotator";
const LETTERS = "ordspan.letters";
const PENDING = "ordspan.pending"; // the request in flight: a reload sends it again with its key

const NOTE_SECONDS = 5;
const FIRST = "Choose a grade first";
const LOADING = "Loading …";
const PATIENCE_MS = 300; // after which an empty page says that it loads
const ITEM_ROOM = 280; // px of the screen that the answer leaves to the item

let annotator = localStorage.getItem(NAME) ?? "";
let grades = [];
let nItems = 0;
let folder; // the state folder that this page was opened on
let item = null; // the response of /api/next
let since = 0; // when it was shown
let guessSeen = false; // whether its guess was ever shown
let guessOpen = false; // whether it is shown now
let busy = false;
let noteTimer = 0;

const scale = new Scale(find("scale"), drawAnswer);

/** The edges of a bracket: of "25k to 40k" both, of "under 25k" and "40k or more" one and "". */
const edges = name => name.replace(/^under /, " to ").replace(/ or more$/, " to ").split(" to ");

/** What a label is called: by one name, or by two with a word between them. */
function nameOf(lower, upper) {
  const [first, last] = [grades[lower - 1], grades[upper - 1]];
  if (lower === upper) return [first];
  if (!grades.some(name => name.includes(" to "))) return [first, " to ", last];
  const [low, high] = [edges(first)[0], edges(last).at(-1)];
  const areBrackets = grades.every((name, at) => at === 0 || edges(grades[at - 1])[1] === edges(name)[0]);
  if (!areBrackets || !(low || high)) return [first, " – ", last];
  if (low && high) return [`${low} to ${high}`];
  return [low ? `${low} or more` : `under ${high}`];
}

const names = (lower, upper) => nameOf(lower, upper).join("");

/** A label as text, each name isolated so that right-to-left names do not reorder the rest. */
const words = (lower, upper) =>
  nameOf(lower, upper).map((part, at) => (at === 1 ? part : make("bdi", "", part)));

function view(name) {
  for (const id of ["hello", "work", "done"]) find(id).hidden = id !== name;
}

/** A short note that disappears by itself. */
function say(sentence) {
  clearTimeout(noteTimer);
  find("note").textContent = sentence;
  noteTimer = setTimeout(() => find("note").replaceChildren(), NOTE_SECONDS * 1000);
}

// ---- requests

/** Show why a request failed, and wait before the next attempt. */
async function wait(sentence, seconds) {
  const kept = sessionStorage.getItem(PENDING) ? " Nothing is lost: your answer is kept here." : "";
  find("trouble").textContent = `${sentence}${kept} Trying again …`;
  find("again").hidden = false;
  await new Promise(done => {
    setTimeout(done, seconds * 1000);
    find("again").onclick = done;
    addEventListener("online", done, { once: true });
  });
  find("again").hidden = true;
}

/** Do one thing at a time; errors show the server's message. */
async function alone(work) {
  if (busy) return;
  busy = true;
  find("main").ariaBusy = "true";
  const slow = setTimeout(() => {
    if (find("work").hidden && find("done").hidden) find("note").textContent = LOADING;
  }, PATIENCE_MS);
  try {
    await work();
    find("trouble").textContent = "";
  } catch (error) {
    find("trouble").textContent = error.message;
    if (!item && find("done").hidden) retryLater();
  } finally {
    clearTimeout(slow);
    if (find("note").textContent === LOADING) say("");
    busy = false;
    find("main").ariaBusy = "false";
  }
}

function retryLater() { // nothing on the page to continue with
  view(null);
  find("again").hidden = false;
  find("again").onclick = () => {
    find("again").hidden = true;
    alone(next);
  };
}

async function next() {
  item = null;
  show(await deliver("/api/next", { folder, annotator }, wait));
}

/** Send an action exactly once: with one key, repeated until the server confirms it. */
async function send(path, body) {
  sessionStorage.setItem(PENDING, JSON.stringify([path, body]));
  let result;
  try {
    result = await deliver(path, body, wait);
  } finally {
    sessionStorage.removeItem(PENDING);
  }
  if (path !== "/api/undo") return next();
  show(result);
  if (result.lower) scale.set(result.lower, result.upper);
  drawAnswer();
  const what = result.undone === "skip" ? "Undid the skip of" : "Undid the answer to";
  say(`${what} ${result.name}.`);
}

const common = () => ({ key: newKey(), folder, annotator, item: item.item, asked_by: item.asked_by,
  seconds: Math.round(performance.now() - since) / 1000 });

function give(lower, upper, via) {
  if (!item) return;
  const body = { ...common(), lower, upper, guess: item.guess, shown: guessSeen, via };
  const note = `Saved: ${names(lower, upper)} for ${item.name}.`;
  alone(async () => {
    await send("/api/answer", body);
    say(note);
  });
}

function giveChosen() {
  if (scale.value) return give(...scale.value, "slider");
  say(`${FIRST}: click one, drag across several, or use the arrow keys.`);
}

function giveBeyond(via) {
  const range = beyond(via);
  if (range) give(...range, via);
  else say(`No guess is shown, so there is nothing ${via}.`);
}

/** The ranks higher or lower than the shown guess, or null if there are none. */
function beyond(via) {
  if (!guessOpen) return null;
  const [lower, upper] = item.guess;
  const range = via === "higher" ? [upper + 1, grades.length] : [1, lower - 1];
  return range[0] <= range[1] ? range : null;
}

function skip() {
  if (!item) return;
  const body = { ...common(), lower: null, upper: null };
  const note = `Skipped ${item.name}.`;
  alone(async () => {
    await send("/api/answer", body);
    say(note);
  });
}

const undo = () => alone(() => send("/api/undo", { key: newKey(), folder, annotator }));

// ---- drawing

function show(given) {
  const skipped = nItems - given.left - given.answered;
  find("count").hidden = false;
  find("bar").max = Math.max(1, nItems);
  find("bar").value = nItems - given.left;
  find("count-words").textContent =
    `${given.answered} of ${nItems} answered${skipped > 0 ? `, ${skipped} skipped` : ""}`;
  say("");
  if (given.item === null) return showDone(given.answered, skipped);
  item = given;
  guessSeen = guessOpen = Boolean(given.guess && given.show_guess);
  find("item-heading").textContent = given.name;
  showItem(find("cells"), given.item, given.cells);
  scale.set(null);
  view("work");
  drawAnswer();
  drawGuess();
  since = performance.now();
  scrollTo(0, 0);
  find("item-heading").focus({ preventScroll: true });
}

function showDone(answered, skipped) {
  item = null;
  view("done");
  find("done-heading").textContent = skipped > 0 ? "That was the last item" : "All items answered";
  const rest = skipped > 0 ? ` and skipped ${skipped}` : "";
  find("done-words").textContent = `Thank you, ${annotator}. You answered ${answered} of ${nItems} items${rest}.`;
  find("done-heading").focus();
}

function drawAnswer() {
  const chosen = scale.value;
  find("chosen").replaceChildren(...(chosen ? words(...chosen) : ["nothing selected"]));
  find("chosen").classList.toggle("none", !chosen);
  find("give").setAttribute("aria-disabled", String(!chosen));
  find("give-words").replaceChildren(
    ...(chosen ? ["Submit: ", ...words(...chosen)] : [FIRST]));
  if (chosen && find("note").textContent.startsWith(FIRST)) say("");
}

/** The answer stays at the bottom of the screen if it leaves enough of it to the item. */
function placeAnswer() {
  find("answer").classList.toggle("tall", innerHeight - find("answer").offsetHeight < ITEM_ROOM);
}

function drawGuess() {
  const { guess } = item;
  find("guess-row").hidden = !guess;
  scale.mark(guessOpen ? guess : null);
  if (!guess) return;
  const [lower, upper, rank] = guess;
  const likely = lower === upper ? [] : [", most likely ", make("bdi", "", grades[rank - 1])];
  find("guess-words").replaceChildren(
    ...(guessOpen
      ? ["The model's guess: ", make("strong", "", ...words(lower, upper)), ...likely]
      : ["The model's guess is hidden."]));
  find("reveal").replaceChildren(guessOpen ? "Hide" : "Show", make("span", "", " the guess"));
  for (const via of ["lower", "higher"]) {
    const range = beyond(via);
    find(via).hidden = !range;
    const label = via === "lower" ? "Lower" : "Higher";
    if (range) find(via).replaceChildren(label, " ", make("span", "", ...words(...range)));
  }
}

function toggleGuess() {
  if (!item?.guess) return;
  guessOpen = !guessOpen;
  guessSeen ||= guessOpen;
  drawGuess();
}

// ---- user input

function askName() {
  item = null;
  view("hello");
  find("name").value = annotator;
  find("name").focus();
}

function begin() {
  find("annotator").textContent = annotator;
  find("rename").hidden = false;
  view(null);
  alone(async () => {
    const task = await deliver("/api/task", undefined, wait);
    [grades, nItems, folder] = [task.grades, task.n_items, task.folder];
    scale.setGrades(grades);
    find("title").textContent = task.title;
    document.title = `${task.title} · ordspan`;
    find("answer-heading").textContent = task.question;
    const pending = sessionStorage.getItem(PENDING);
    await (pending ? send(...JSON.parse(pending)) : next());
  });
}

/** The grade of a digit: the one with that name, else the one in that position. */
function gradeOf(digit) {
  const named = grades.indexOf(digit) + 1;
  if (named || grades.some(name => /^\d+$/.test(name))) return named;
  return Number(digit) <= grades.length ? Number(digit) : 0;
}

const actions = { u: undo, s: skip, h: () => giveBeyond("higher"), l: () => giveBeyond("lower"),
  g: toggleGuess, Enter: giveChosen };

/** Opens the list of keys, focused so that it is read from its top and not from its first field. */
function showKeys() {
  find("keys").showModal();
  find("keys-heading").focus();
}

function onKey(event) {
  const { key, target, shiftKey } = event;
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (target.closest("input, dialog") || document.querySelector("dialog[open]")) return;
  if (key === "Enter" && target.closest("button, a")) return;
  const name = key.length === 1 ? key.toLowerCase() : key;
  if (name.length === 1 && !find("letters").checked) return;
  if (name === "?") return showKeys();
  if (busy || (!item && (name !== "u" || find("done").hidden))) return;
  const by = { ArrowLeft: -1, ArrowRight: 1 }[name];
  if (by) shiftKey ? scale.extend(by) : scale.move(by);
  else if (/^\d$/.test(name) && gradeOf(name)) scale.choose(gradeOf(name));
  else if (actions[name] && !event.repeat) actions[name]();
  else return;
  event.preventDefault();
}

find("hello-form").addEventListener("submit", event => {
  event.preventDefault();
  const given = find("name").value.trim();
  if (!given) return;
  annotator = given;
  localStorage.setItem(NAME, annotator);
  begin();
});
find("rename").addEventListener("click", () => busy || askName());
find("help").addEventListener("click", showKeys);
find("give").addEventListener("click", giveChosen);
find("skip").addEventListener("click", skip);
find("undo").addEventListener("click", undo);
find("undo-done").addEventListener("click", undo);
find("higher").addEventListener("click", () => giveBeyond("higher"));
find("lower").addEventListener("click", () => giveBeyond("lower"));
find("reveal").addEventListener("click", toggleGuess);
find("answer").addEventListener("click", event => { // so that Enter submits after a mouse click
  if (event.detail) document.activeElement.blur();
});
find("letters").checked = localStorage.getItem(LETTERS) !== "off";
find("letters").addEventListener("change", event =>
  localStorage.setItem(LETTERS, event.target.checked ? "on" : "off"));
document.addEventListener("keydown", onKey);
new ResizeObserver(placeAnswer).observe(find("answer"));
addEventListener("resize", placeAnswer);
addEventListener("beforeunload", event => sessionStorage.getItem(PENDING) && event.preventDefault());

if (annotator) begin();
else askName();
