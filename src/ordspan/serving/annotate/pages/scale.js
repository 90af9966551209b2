// The two-handled slider over the grades. Ranks count from 1; two equal ends are an exact label.
import { make } from "./talk.js";

const ROOMY = 60; // px of a grade from which both handles fit inside it
const DENSE = 32; // px of a grade below which buttons for single steps help
const STEPS = [1, 2, 5, 10, 20, 25, 50, 100];
const GAP = 8; // px between two names
const SLOP = 4; // px a tap may move

const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

export class Scale {
  /** A slider in `root`; `changed()` is called after each change by the user. */
  constructor(root, changed) {
    this.root = root;
    this.changed = changed;
    this.part = selector => root.querySelector(selector);
    [this.low, this.high] = [this.part(".grip.low"), this.part(".grip.high")];
    this.names = [];
    this.anchor = this.active = null; // the end that stays and the end that moves
    const surface = this.part(".lane");
    surface.addEventListener("pointerdown", event => this.#press(event));
    surface.addEventListener("pointermove", event => this.#drag(event));
    surface.addEventListener("pointerup", event => this.#release(event));
    surface.addEventListener("pointercancel", () => this.#cancel());
    for (const grip of [this.low, this.high]) {
      grip.addEventListener("keydown", event => this.#key(event, grip));
    }
    this.part(".steps").addEventListener("click", event => {
      const { end, by } = event.target.dataset;
      if (end) this.#moveEnd(end, Number(by));
    });
    new ResizeObserver(() => this.#layOut()).observe(root);
  }

  setGrades(names) {
    this.names = names;
    this.part(".ticks").replaceChildren(...names.map(() => make("i")));
    this.part(".names").replaceChildren(
      ...names.map(name => {
        const label = make("span", "", make("bdi", "", name));
        label.title = name;
        return label;
      }),
    );
    this.set(null);
    this.#layOut();
  }

  /** The chosen ranks, lowest first, or null before the first touch. */
  get value() {
    return this.anchor === null
      ? null
      : [Math.min(this.anchor, this.active), Math.max(this.anchor, this.active)];
  }

  set(anchor, active = anchor) {
    [this.anchor, this.active] = [anchor, active];
    this.#draw();
  }

  /** Mark the guess `[lower, upper, rank]` on the scale, or nothing. */
  mark(guess) {
    const marker = this.part(".marker");
    marker.hidden = !guess;
    if (!guess) return;
    const [lower, upper, rank] = guess;
    this.#place(marker, lower, upper);
    const share = (rank - lower + 0.5) / (upper - lower + 1);
    marker.firstElementChild.style.left = `${100 * share}%`;
  }

  /** Move the whole answer; the first move starts in the middle. */
  move(by) {
    if (this.#start(by)) return;
    const [lower, upper] = this.value;
    const step = clamp(by, 1 - lower, this.names.length - upper);
    this.#choose(this.anchor + step, this.active + step);
  }

  /** Move the end that moves, as Shift does with selected text. */
  extend(by) {
    if (this.#start(by)) return;
    this.#choose(this.anchor, clamp(this.active + by, 1, this.names.length));
  }

  choose(rank) {
    this.#choose(rank, rank);
  }

  #choose(anchor, active) {
    this.set(anchor, active);
    this.changed();
  }

  #start(by) {
    if (this.anchor !== null) return false;
    const middle = (this.names.length + 1) / 2;
    this.choose(by < 0 ? Math.floor(middle) : Math.ceil(middle));
    return true;
  }

  #moveEnd(end, by) {
    if (this.#start(by)) return;
    const [lower, upper] = this.value;
    if (end === "low") this.#choose(upper, clamp(lower + by, 1, upper));
    else this.#choose(lower, clamp(upper + by, lower, this.names.length));
  }

  #key(event, grip) {
    if (event.shiftKey || event.ctrlKey || event.metaKey || event.altKey) return;
    const all = this.names.length;
    const large = Math.max(2, Math.round(all / 10));
    const steps = {
      ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1,
      PageDown: -large, PageUp: large, Home: -all, End: all,
    };
    const by = steps[event.key];
    if (!by) return;
    event.preventDefault();
    if (this.anchor === null && Math.abs(by) === all) this.choose(by < 0 ? 1 : all);
    else this.#moveEnd(grip === this.low ? "low" : "high", by);
  }

  #gradeAt(x) {
    const box = this.part(".track").getBoundingClientRect();
    return clamp(Math.ceil(((x - box.left) / box.width) * this.names.length), 1, this.names.length);
  }

  #press(event) {
    if (event.button !== 0 || !event.isPrimary) return;
    const [lower, upper] = this.value ?? [1, this.names.length];
    const drag = { before: [this.anchor, this.active], x: event.clientX, shift: 0, moved: false };
    drag.grip = event.target.closest(".grip");
    drag.anchor = this.#gradeAt(event.clientX);
    if (drag.grip) {
      const box = this.part(".track").getBoundingClientRect();
      const end = drag.grip === this.low ? lower : upper;
      drag.anchor = drag.grip === this.low ? upper : lower;
      drag.shift = box.left + ((end - 0.5) / this.names.length) * box.width - event.clientX;
    } else {
      this.choose(drag.anchor);
    }
    this.drag = drag;
    this.part(".lane").setPointerCapture(event.pointerId);
    this.root.classList.add("dragging");
  }

  #drag(event) {
    const drag = this.drag;
    if (!drag || !event.isPrimary) return;
    drag.moved ||= Math.abs(event.clientX - drag.x) > SLOP;
    if (drag.moved) this.#choose(drag.anchor, this.#gradeAt(event.clientX + drag.shift));
  }

  #release(event) {
    if (!this.drag || !event.isPrimary) return;
    if (this.drag.grip && !this.drag.moved) this.choose(this.#gradeAt(event.clientX));
    this.#end();
  }

  #cancel() { // the touch became a scroll
    if (!this.drag) return;
    this.#choose(...this.drag.before);
    this.#end();
  }

  #end() {
    this.drag = null;
    this.root.classList.remove("dragging");
  }

  #place(element, lower, upper) {
    element.style.left = `${(100 * (lower - 1)) / this.names.length}%`;
    element.style.width = `${(100 * (upper - lower + 1)) / this.names.length}%`;
  }

  #draw() {
    const all = this.names.length;
    const [lower, upper] = this.value ?? [1, all];
    const chosen = this.value !== null;
    this.root.classList.toggle("chosen", chosen);
    const span = this.part(".span");
    span.hidden = !chosen;
    this.#place(span, lower, upper);
    this.low.style.left = `${(100 * (lower - 1)) / all}%`;
    this.high.style.left = `${(100 * upper) / all}%`;
    this.#describe(this.low, 1, chosen ? upper : all, lower);
    this.#describe(this.high, chosen ? lower : 1, all, upper);
    this.part(".at-low").textContent = chosen ? this.names[lower - 1] : "–";
    this.part(".at-high").textContent = chosen ? this.names[upper - 1] : "–";
    [...this.part(".names").children].forEach((label, at) => {
      label.classList.toggle("in", chosen && at + 1 >= lower && at + 1 <= upper);
    });
  }

  #describe(grip, lowest, highest, rank) {
    grip.setAttribute("aria-valuemin", lowest);
    grip.setAttribute("aria-valuemax", highest);
    grip.setAttribute("aria-valuenow", rank);
    const words = this.anchor === null ? "not selected" : this.names[rank - 1];
    grip.setAttribute("aria-valuetext", words);
  }

  /** Fit handles and names to the width: names wrap, else alternate between two rows, else only some are shown. */
  #layOut() {
    const each = this.root.clientWidth / this.names.length;
    if (!each) return;
    this.root.classList.toggle("roomy", each >= ROOMY);
    this.part(".steps").hidden = each >= DENSE;
    const row = this.part(".names");
    const labels = [...row.children];
    row.className = "names";
    for (const label of labels) label.classList.remove("out");
    if (labels.every(label => label.scrollWidth <= label.clientWidth)) return;
    row.classList.add("one-line");
    const boxes = labels.map(label => label.getBoundingClientRect());
    const apart = (a, b) => boxes[a].right + GAP <= boxes[b].left;
    const last = labels.length - 1;
    if (labels.every((_, at) => at < 2 || apart(at - 2, at))) return row.classList.add("stagger");
    for (const step of STEPS) {
      const inner = labels.map((_, at) => at).filter(at =>
        (at + 1) % step === 0 && at > 0 && at < last && apart(0, at) && apart(at, last));
      if (!inner.every((at, n) => n === 0 || apart(inner[n - 1], at))) continue;
      const shown = new Set([0, ...inner, last]);
      return labels.forEach((label, at) => label.classList.toggle("out", !shown.has(at)));
    }
  }
}
