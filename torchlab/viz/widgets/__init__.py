"""Widgets. `live` needs anywidget when it is imported: reach it through `lazy`."""
