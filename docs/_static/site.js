// Every figure links to itself: on a phone the details of a wide one are too small.
document.addEventListener("DOMContentLoaded", () => {
  for (const image of document.querySelectorAll("article img")) {
    if (image.closest("a, .sphx-glr-thumbcontainer")) continue;
    const link = document.createElement("a");
    link.href = image.src;
    image.replaceWith(link);
    link.append(image);
  }
});
