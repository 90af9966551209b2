// Calls to the server: its token, its errors as sentences, and calls repeated until they arrive.
const TOKEN = "ordspan.token";
const PATIENCE = 30; // seconds before a call without an answer is tried again

const fragment = new URLSearchParams(location.hash.slice(1));
if (fragment.has("token")) {
  sessionStorage.setItem(TOKEN, fragment.get("token"));
  history.replaceState(null, "", location.pathname); // the token does not stay in the address bar
}

export class Refused extends Error {} // the server understood and said no: its sentence
export class Unreached extends Error { // worth another try, after so many seconds where it says so
  constructor(sentence, seconds) {
    super(sentence);
    this.seconds = seconds;
  }
}

export function find(id) {
  return document.getElementById(id);
}

/** A new element with text or other nodes in it; never markup. */
export function make(tag, className, ...content) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...content);
  return element;
}

/** The response of the server, asking for the token where it is needed. */
async function reach(path, body) {
  for (;;) {
    const headers = {};
    const token = sessionStorage.getItem(TOKEN);
    if (token) headers.Authorization = `Bearer ${token}`;
    if (body) headers["Content-Type"] = "application/json";
    const options = { headers, signal: AbortSignal.timeout(PATIENCE * 1000), cache: "no-store" };
    if (body) Object.assign(options, { method: "POST", body: JSON.stringify(body) });
    let response;
    try {
      response = await fetch(path, options);
    } catch {
      throw new Unreached("The server cannot be reached.");
    }
    if (response.ok) return response;
    if (response.status === 401) {
      await askForToken();
      continue;
    }
    const sentence = await sentenceOf(response);
    if (response.status < 500) throw new Refused(sentence);
    const seconds = Number(response.headers.get("Retry-After"));
    throw new Unreached(sentence, Number.isFinite(seconds) && seconds > 0 ? seconds : undefined);
  }
}

async function sentenceOf(response) {
  const { detail } = await response.json().catch(() => ({}));
  return typeof detail === "string" ? detail : `The server answered with error ${response.status}.`;
}

/** What the server says as JSON to a GET, or to a POST where there is a body. */
export async function call(path, body) {
  const response = await reach(path, body);
  try {
    return await response.json();
  } catch {
    throw new Unreached("The answer of the server was cut off.");
  }
}

export async function image(path) {
  return URL.createObjectURL(await (await reach(path)).blob());
}

/** Call until the server has answered; `wait(sentence, seconds)` passes the time between. */
export async function deliver(path, body, wait) {
  for (let tries = 0; ; tries++) {
    try {
      return await call(path, body);
    } catch (error) {
      if (!(error instanceof Unreached)) throw error;
      await wait(error.message, Math.min(60, error.seconds ?? 2 ** Math.min(tries, 4)));
    }
  }
}

/** A new key; `crypto.randomUUID` is missing on plain http from another machine. */
export function newKey() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, byte => byte.toString(16).padStart(2, "0")).join("");
}

async function askForToken() {
  const dialog = find("token");
  const field = find("token-value");
  field.value = "";
  if (!dialog.open) dialog.showModal();
  await new Promise(done => dialog.addEventListener("close", done, { once: true }));
  sessionStorage.setItem(TOKEN, field.value);
}
