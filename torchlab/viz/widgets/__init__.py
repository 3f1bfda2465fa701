"""Widgets. `live` needs anywidget at import and `controls` ipywidgets: reach both through `lazy`."""
