"""What a layout returns: boxes and routes in pixels, y pointing down."""

from __future__ import annotations

from dataclasses import dataclass, field

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle: top left corner, width and height, in pixels."""

    x: float
    y: float
    width: float
    height: float

    @property
    def cx(self) -> float:
        """The x of the centre."""
        return self.x + self.width / 2

    @property
    def right(self) -> float:
        """The x of the right side."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """The y of the lower side."""
        return self.y + self.height

    def moved(self, dx: float, dy: float) -> Box:
        """The same box, shifted."""
        return Box(self.x + dx, self.y + dy, self.width, self.height)

    def overlaps(self, other: Box) -> bool:
        """Whether the interiors meet (touching sides do not count)."""
        eps = 1e-6
        return (
            self.x < other.right - eps
            and other.x < self.right - eps
            and self.y < other.bottom - eps
            and other.y < self.bottom - eps
        )


@dataclass(frozen=True, slots=True)
class Route:
    """An edge's way: `points` go from the source's box to the target's."""

    src: str
    dst: str
    points: tuple[Point, ...]

    def moved(self, dx: float, dy: float) -> Route:
        """The same route, shifted."""
        return Route(self.src, self.dst, tuple((x + dx, y + dy) for x, y in self.points))

    def path(self) -> str:
        """SVG path data: straight inside a rank, a curve with upright ends between two ranks."""
        first = self.points[0]
        out = [f"M{first[0]:.1f} {first[1]:.1f}"]
        for (x0, y0), (x1, y1) in zip(self.points, self.points[1:], strict=False):
            if abs(x0 - x1) < 0.5:
                out.append(f"L{x1:.1f} {y1:.1f}")
            else:
                middle = (y0 + y1) / 2
                out.append(f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}")
        return "".join(out)


@dataclass(slots=True)
class Layout:
    """A finished drawing. `routes` are in the order of the edges given, one each."""

    width: float
    height: float
    nodes: dict[str, Box] = field(default_factory=dict)
    routes: list[Route] = field(default_factory=list)
    groups: dict[str, Box] = field(default_factory=dict)
