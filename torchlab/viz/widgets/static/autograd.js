// The autograd graph: choosing a node is all it does, and common.js does that.
export default picture();
