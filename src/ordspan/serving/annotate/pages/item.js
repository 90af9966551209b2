// One item as a card. What it holds is shown as text, never read as markup.
import { image, make } from "./talk.js";

const LONG = 80; // characters from which a text takes the whole width
let pictures = []; // addresses to give back when the next item comes

export function showItem(list, item, cells) {
  pictures.forEach(address => URL.revokeObjectURL(address));
  pictures = [];
  list.replaceChildren(...cells.map((cell, number) => pair(item, cell, number)));
}

function pair(item, { name, kind, value: given }, number) {
  const value = given ?? "";
  const body = make("dd", kind);
  body.dir = "auto";
  if (kind === "image") body.append(picture(item, name, number));
  else if (value === "") body.append(make("span", "empty", "empty"));
  else body.append(value);
  const long = kind === "text" && (value.length > LONG || value.includes("\n"));
  return make("div", long || kind === "image" ? "wide" : "", make("dt", "", make("bdi", "", name)), body);
}

function picture(item, name, number) {
  const place = make("div", "picture", "Loading the picture …");
  image(`/api/image/${item}/${number}`).then(
    address => {
      if (!place.isConnected) return URL.revokeObjectURL(address);
      pictures.push(address);
      const shown = make("img");
      shown.alt = name;
      shown.onerror = () => place.replaceChildren("This file is not a picture the browser can show.");
      shown.src = address;
      place.replaceChildren(shown);
    },
    error => place.replaceChildren(`The picture could not be loaded: ${error.message}`),
  );
  return place;
}
