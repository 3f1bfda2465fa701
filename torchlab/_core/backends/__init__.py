"""Device backends: an array module, and how memory is had there."""
