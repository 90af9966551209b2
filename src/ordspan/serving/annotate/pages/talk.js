// Requests to the server: token, error messages, and retries.
const TOKEN = "ordspan.token";
const TIMEOUT_SECONDS = 30; // seconds before a request without a response is retried

const fragment = new URLSearchParams(location.hash.slice(1));
if (fragment.has("token")) {
  sessionStorage.setItem(TOKEN, fragment.get("token"));
  history.replaceState(null, "", location.pathname); // the token does not stay in the address bar
}

export class Refused extends Error {} // the server rejected the request, with a message
export class Unreached extends Error { // worth a retry, after the given seconds if any
  constructor(sentence, seconds) {
    super(sentence);
    this.seconds = seconds;
  }
}

export function find(id) {
  return document.getElementById(id);
}

/** A new element with text or nodes as children; never markup. */
export function make(tag, className, ...content) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...content);
  return element;
}

/** The response of the server; asks the user for the token if needed. */
async function reach(path, body) {
  for (;;) {
    const headers = {};
    const token = sessionStorage.getItem(TOKEN);
    if (token) headers.Authorization = `Bearer ${token}`;
    if (body) headers["Content-Type"] = "application/json";
    const options = { headers, signal: AbortSignal.timeout(TIMEOUT_SECONDS * 1000), cache: "no-store" };
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

/** The JSON response to a GET, or to a POST if there is a body. */
export async function call(path, body) {
  const response = await reach(path, body);
  try {
    return await response.json();
  } catch {
    throw new Unreached("The server's response was cut off.");
  }
}

export async function image(path) {
  return URL.createObjectURL(await (await reach(path)).blob());
}

/** Retry until the server responds; `wait(sentence, seconds)` is awaited in between. */
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
