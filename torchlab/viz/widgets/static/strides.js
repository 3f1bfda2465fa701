// The stride explorer: an index and its storage cell light up together.
function light(view, part) {
  for (const node of view.stage.querySelectorAll(".tlv-twin")) node.classList.remove("tlv-twin");
  unring(view.stage, "tlv-pair");
  const cell = part?.dataset.cell;
  if (cell === undefined) return;
  for (const node of view.stage.querySelectorAll(`[data-cell="${cell}"]`)) {
    node.classList.add("tlv-twin");
    ring(node, "tlv-pair");
  }
}

const chosen = (view) => view.stage.querySelector(".tlv-sel");

export default picture({
  onSelect: (view) => light(view, chosen(view)),
  onHover: (view, part) => light(view, part ?? chosen(view)),
});
