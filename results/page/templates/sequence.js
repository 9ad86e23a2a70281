// Zooms the sequence diagram, and moves it with the pointer. It opens as wide as the page, or with the first node in view, and the
// names of the lifelines stay at the top. Without this the page shows it in full size.
(() => {
  "use strict";
  const scroller = document.getElementById("sequence");
  if (!scroller) return;
  const picture = scroller.querySelector("svg"), own = picture.viewBox.baseVal;
  let scale = 1;
  function zoom(factor, x = scroller.clientWidth / 2, y = scroller.clientHeight / 2) {
    const before = scale;
    scale = Math.min(4, Math.max(0.2, scale * factor));
    picture.setAttribute("width", own.width * scale);
    picture.setAttribute("height", own.height * scale);
    scroller.scrollLeft = (scroller.scrollLeft + x) * scale / before - x;
    scroller.scrollTop = (scroller.scrollTop + y) * scale / before - y;
  }
  const heads = picture.querySelector(".heads");
  scroller.addEventListener("scroll", () => heads.setAttribute("transform", `translate(0 ${scroller.scrollTop / scale})`), { passive: true });
  const fit = () => Math.min(scroller.clientWidth / own.width, scroller.clientHeight / own.height) / scale;
  const actions = { in: () => zoom(1.25), out: () => zoom(0.8), fit: () => zoom(fit()), own: () => zoom(1 / scale) };
  const bar = scroller.previousElementSibling;
  bar.hidden = false;
  for (const button of bar.querySelectorAll("[data-zoom]")) button.addEventListener("click", actions[button.dataset.zoom]);
  scroller.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = scroller.getBoundingClientRect();
    zoom(event.deltaY < 0 ? 1.12 : 1 / 1.12, event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  scroller.addEventListener("keydown", (event) => {
    const key = { "+": "in", "=": "in", "-": "out", "0": "fit", "1": "own" }[event.key];
    if (!key || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[key]();
  });
  zoom(Math.min(1, Math.max(0.7, scroller.clientWidth / own.width)), 0, 0);
  const node = heads.querySelector("[data-node]"), box = scroller.getBoundingClientRect();
  if (node) scroller.scrollLeft = Math.max(0, node.getBoundingClientRect().right - box.left - 0.75 * box.width);
  let held = null;
  scroller.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.button !== 0 || event.target.closest("text")) return;
    held = [event.clientX, event.clientY];
    scroller.setPointerCapture(event.pointerId);
  });
  scroller.addEventListener("pointermove", (event) => {
    if (!held) return;
    scroller.scrollLeft += held[0] - event.clientX;
    scroller.scrollTop += held[1] - event.clientY;
    held = [event.clientX, event.clientY];
  });
  for (const end of ["pointerup", "pointercancel"]) scroller.addEventListener(end, () => { held = null; });
})();
