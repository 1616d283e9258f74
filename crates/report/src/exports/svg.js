
// Zoom by click, search by name. Reads only what the picture shows.
addEventListener("load", () => {
  const boxes = [...document.querySelectorAll("#boxes g")].map((group) => {
    const [rect, text] = [group.querySelector("rect"), group.querySelector("text")];
    const value = (name) => parseFloat(rect.getAttribute(name));
    const title = group.querySelector("title").textContent;
    const name = title.slice(0, title.lastIndexOf(" ("));
    return { group, rect, text, name, x: value("x"), y: value("y"), width: value("width") };
  });
  const whole = boxes[0];
  if (!whole) return;
  const search = document.getElementById("search");
  const reset = document.getElementById("reset");
  const zoom = (to) => {
    const scale = whole.width / to.width;
    for (const box of boxes) {
      const isOuter = box.x <= to.x + 0.05 && box.x + box.width >= to.x + to.width - 0.05 && box.y > to.y;
      const x = isOuter ? whole.x : whole.x + (box.x - to.x) * scale;
      const width = isOuter ? whole.width : box.width * scale;
      const isSeen = x + width > whole.x + 0.05 && x < whole.x + whole.width - 0.05;
      box.group.setAttribute("display", isSeen ? "inline" : "none");
      box.group.classList.toggle("outer", isOuter && box !== to);
      box.rect.setAttribute("x", x);
      box.rect.setAttribute("width", width);
      box.text.setAttribute("x", x + 3);
      const room = Math.floor((width - 6) / 7);
      const name = box.name;
      box.text.textContent = room < 3 ? "" : name.length <= room ? name : name.slice(0, room - 1) + "…";
    }
    reset.setAttribute("visibility", to === whole ? "hidden" : "visible");
  };
  for (const box of boxes) box.group.addEventListener("click", () => zoom(box));
  reset.addEventListener("click", () => zoom(whole));
  search.addEventListener("click", () => {
    const wanted = prompt("Function (regular expression)", "");
    if (wanted === null) return;
    let pattern;
    try {
      pattern = new RegExp(wanted);
    } catch {
      pattern = { test: (name) => name.includes(wanted) };
    }
    for (const box of boxes) box.group.classList.toggle("found", wanted !== "" && pattern.test(box.name));
  });
});
