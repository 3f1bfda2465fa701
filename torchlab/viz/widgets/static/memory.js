// The allocator: hovering over the timeline shows a line at the event below the pointer (style.css).
export default picture();
