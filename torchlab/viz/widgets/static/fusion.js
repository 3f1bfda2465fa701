// Fusion: choosing a node lights its source lines, choosing a kernel its whole source; and the reverse:
// pointing at a line lights the nodes that it computes.
function light(view, ids, kernel) {
  for (const node of view.stage.querySelectorAll(".tlv-twin")) node.classList.remove("tlv-twin");
  let first = null;
  for (const line of view.stage.querySelectorAll(".code")) {
    const mine = line.dataset.kernel === kernel || line.dataset.nodes.split(" ").some((id) => ids.includes(id));
    line.classList.toggle("tlv-twin", mine);
    if (mine && !first) first = line;
  }
  for (const id of ids) view.stage.querySelector(`.part[data-id="${CSS.escape(id)}"]`)?.classList.add("tlv-twin");
  return first;
}

function lightChoice(view, id) {
  const part = view.stage.querySelector(`.part[data-id="${CSS.escape(id)}"]`);
  const nodes = part?.dataset.nodes ? part.dataset.nodes.split(" ") : [id];
  const line = light(view, nodes, part?.dataset.kernel);
  const pane = line?.closest(".tlv-scroll");
  if (pane && pane.scrollHeight > pane.clientHeight) {
    const box = line.getBoundingClientRect(), frame = pane.getBoundingClientRect();
    if (box.top < frame.top || box.bottom > frame.bottom) pane.scrollTop += box.top - frame.top - frame.height / 3;
  }
}

export default picture({
  onSelect: lightChoice,
  onDraw(view) {
    if (view.wired) return;
    view.wired = true;
    view.stage.addEventListener("pointerover", (event) => {
      const line = event.target.closest?.(".code");
      if (line && line.dataset.nodes) light(view, line.dataset.nodes.split(" "));
      else if (!line && view.selected !== null) lightChoice(view, view.selected);
    });
  },
});
