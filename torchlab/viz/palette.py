"""The colours of every picture, stated once: light, dark, and as CSS variables for live widgets."""

from __future__ import annotations

from collections.abc import Iterator

COLOURS: dict[str, tuple[str, str]] = {
    # name: (light, dark)
    "bg": ("#ffffff", "#15181e"),
    "panel": ("#f6f8fa", "#1c2028"),
    "ink": ("#1c2430", "#e4e8ee"),
    "muted": ("#5a6675", "#9ba7b6"),
    "line": ("#d0d7e0", "#39414e"),
    "edge": ("#8b97a8", "#6c798b"),
    "op": ("#eaf1fd", "#1b2a44"),
    "op-line": ("#3f74c9", "#6fa2f2"),
    "leaf": ("#e7f5ee", "#173327"),
    "leaf-line": ("#23875b", "#4fc08d"),
    "io": ("#f3f4f6", "#262c36"),
    "io-line": ("#76808f", "#8d99aa"),
    "group": ("#fbf6ec", "#242118"),
    "group-line": ("#b7791f", "#d9a441"),
    "run": ("#6741d9", "#b197fc"),
    "accent": ("#d6336c", "#ff6b9d"),
    "warn": ("#a85b00", "#f0b04f"),
    "warn-bg": ("#fff4e0", "#33270f"),
    "error": ("#c02b2b", "#ff8078"),
    "error-bg": ("#fdeceb", "#3a1c1b"),
    "good": ("#1f7a4d", "#56c596"),
    "free": ("#eef1f5", "#232933"),
    "free-line": ("#b9c3d0", "#465063"),
    "reserved": ("#9aa7b8", "#76849a"),
    "allocated": ("#3f74c9", "#6fa2f2"),
    "keyword": ("#8a3ab9", "#c99bf0"),
    "comment": ("#4f6b3a", "#8fb574"),
    # eight hues for rows, blocks and groups; their text is always `ink`
    "c0": ("#cfe0fb", "#27406b"),
    "c1": ("#fde2c4", "#5a3d1c"),
    "c2": ("#d3efd9", "#22502f"),
    "c3": ("#f9d3de", "#5c2a3c"),
    "c4": ("#e2d8f7", "#433163"),
    "c5": ("#cdeef0", "#1f4d52"),
    "c6": ("#f3ecb8", "#4f4a1c"),
    "c7": ("#e3dcd3", "#473f35"),
    # phases of data loading: told apart by colour-blind readers too, by lightness where hues meet
    "p-fetch": ("#1d4596", "#6a97f5"),
    "p-collate": ("#dcab2a", "#f2d43c"),
    "p-hand-over": ("#cf5be0", "#8a3df0"),
    "p-wait": ("#8a1a17", "#d9452a"),
    "p-step": ("#2fae73", "#34e39b"),
    "p-start": ("#69738a", "#8d8f9b"),
    # a ramp for magnitudes, low to high
    "h0": ("#5e72c4", "#7f92e6"),
    "h1": ("#3b9dc4", "#57b8de"),
    "h2": ("#53b88a", "#63cf9d"),
    "h3": ("#e0b13a", "#edc455"),
    "h4": ("#e8793a", "#f39257"),
    "h5": ("#cf3b4a", "#f06673"),
}
CATEGORIES = 8
HEATS = 6

Ink = dict[str, str]


def ink(theme: str = "light") -> Ink:
    """Colour by name. `"light"` and `"dark"` give plain colours, which every SVG viewer knows;
    `"css"` gives `var(--tl-name, light)`, which a page can change later.

    Raises:
        ValueError: another theme.
    """
    if theme == "light":
        return {name: pair[0] for name, pair in COLOURS.items()}
    if theme == "dark":
        return {name: pair[1] for name, pair in COLOURS.items()}
    if theme == "css":
        return {name: f"var(--tl-{name}, {pair[0]})" for name, pair in COLOURS.items()}
    raise ValueError(f"theme must be 'light', 'dark' or 'css', got {theme!r}")


def _variables(which: int) -> Iterator[str]:
    for name, pair in COLOURS.items():
        yield f"--tl-{name}:{pair[which]};"


def css_variables() -> str:
    """The variables for pages: the system's preference, overruled by JupyterLab's theme."""
    light, dark = "".join(_variables(0)), "".join(_variables(1))
    return (
        f".tlviz{{color-scheme:light;{light}}}\n"
        f"@media (prefers-color-scheme:dark){{.tlviz{{color-scheme:dark;{dark}}}}}\n"
        f'[data-jp-theme-light="true"] .tlviz{{color-scheme:light;{light}}}\n'
        f'[data-jp-theme-light="false"] .tlviz{{color-scheme:dark;{dark}}}\n'
    )


def category(index: int) -> str:
    """The name of the `index`-th hue; they repeat after eight."""
    return f"c{index % CATEGORIES}"


def heat(fraction: float) -> str:
    """The name of the ramp's colour at `fraction` (0 low … 1 high; clipped)."""
    return f"h{min(HEATS - 1, max(0, int(fraction * HEATS)))}"


# Ramps of values, the same in both themes. Smits, Firing and van der Walt's viridis (CC0), whose
# steps look even and which colour-blind readers can order; and a pair of hues around a neutral
# middle for values on both sides of zero.
VALUES = ("#440154", "#414487", "#2a788e", "#22a884", "#7ad151", "#fde725")
SIGNED = ("#1d5fa8", "#5b93cc", "#a9bfd6", "#b9b9b9", "#dfb4a3", "#d47a58", "#b03a1e")


def mix(ramp: tuple[str, ...], fraction: float) -> str:
    """The colour of a ramp at `fraction` (0 its first … 1 its last)."""
    at = fraction * (len(ramp) - 1)
    low = min(int(at), len(ramp) - 2)
    part = at - low
    pairs = ((int(ramp[low][k : k + 2], 16), int(ramp[low + 1][k : k + 2], 16)) for k in (1, 3, 5))
    return "#" + "".join(f"{round(a + part * (b - a)):02x}" for a, b in pairs)
