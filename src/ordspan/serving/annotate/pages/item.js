// One item as a card. Its content is shown as text, never parsed as markup.
import { image, make } from "./talk.js";

const LONG = 80; // characters from which text takes the full width
let pictures = []; // URLs to revoke when the next item is shown

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
  const place = make("div", "picture", "Loading image …");
  image(`/api/image?item=${item}&cell=${number}`).then(
    address => {
      if (!place.isConnected) return URL.revokeObjectURL(address);
      pictures.push(address);
      const shown = make("img");
      shown.alt = name;
      shown.onerror = () => place.replaceChildren("The browser cannot show this image.");
      shown.src = address;
      place.replaceChildren(shown);
    },
    error => place.replaceChildren(`The image could not be loaded: ${error.message}`),
  );
  return place;
}
