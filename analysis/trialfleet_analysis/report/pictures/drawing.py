"""Pictures drawn by Matplotlib, which brings its font along. Same picture, same bytes."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias

from trialfleet_analysis.report.pictures.shapes import Area, Dot, Line, Picture, Shape, Words
from trialfleet_ledger.errors import OperatorError

PictureFormat: TypeAlias = Literal["svg", "pdf", "png"]
Measure: TypeAlias = Callable[[str, float, bool], float]

DPI = 300  # of PNG
MOST_PIXELS = 60_000  # of a side
PARTS = (
    *(f"backends.backend_{kind}" for kind in ("agg", "pdf", "svg")),
    "figure",
    "lines",
    "patches",
    "textpath",
)
SETTINGS = {
    "font.family": ["DejaVu Sans"],  # comes with Matplotlib
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "svg.fonttype": "none",  # text stays text, with a generic family behind the font's name
    "svg.hashsalt": "trialfleet",
    "pdf.fonttype": 42,  # embedded as TrueType: publishers refuse Type 3
    "path.simplify": False,
}
ABOUT: dict[PictureFormat, dict[str, str | None]] = {
    "svg": {"Creator": "trialfleet", "Date": None},
    "pdf": {"Creator": "trialfleet", "Producer": None, "CreationDate": None},
    "png": {"Software": None},
}


@cache
def load_matplotlib() -> Any:
    """Imported when a picture is drawn; what it finds out about the machine's fonts is not kept, so that it writes
    nothing into the user's folders. It does not see a `matplotlibrc` of the current folder, which it would read
    first: the folder may be a repository of somebody else."""
    with _open_folder() as folder:
        before, exists = os.environ.get("MPLCONFIGDIR"), os.path.exists
        os.environ["MPLCONFIGDIR"] = folder
        os.path.exists = partial(_exists_elsewhere, exists)
        try:
            for name in PARTS:
                import_module(f"matplotlib.{name}")
        finally:
            os.path.exists = exists
            if before is None:
                del os.environ["MPLCONFIGDIR"]
            else:
                os.environ["MPLCONFIGDIR"] = before
    return import_module("matplotlib")


def _exists_elsewhere(exists: Callable[[Any], bool], path: Any) -> bool:
    return path != "matplotlibrc" and exists(path)


def _open_folder() -> TemporaryDirectory[str]:
    try:
        return TemporaryDirectory(prefix="trialfleet-fonts-")
    except OSError as error:
        raise OperatorError(
            f"no folder for temporary files: {error.strerror}", where="TMPDIR", hint="set TMPDIR to one with room"
        ) from error


@cache
def measure_text(text: str, size: float, bold: bool) -> float:
    """The width in points."""
    mpl = load_matplotlib()
    font = mpl.font_manager.FontProperties(family="DejaVu Sans", size=size, weight="bold" if bold else "normal")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a sign that the font lacks is a box
        width, _, _ = mpl.textpath.TextToPath().get_text_width_height_descent(text, font, ismath=False)
    return float(width)


def draw_picture(picture: Picture, form: PictureFormat) -> bytes:
    """The file's content. Nothing of the user's settings counts."""
    mpl = load_matplotlib()
    with mpl.rc_context({**mpl.rcParamsDefault, **SETTINGS}), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figure = mpl.figure.Figure(figsize=(picture.width / 72, picture.height / 72), facecolor="white")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, picture.width)
        axes.set_ylim(picture.height, 0)
        for order, shape in enumerate(picture.shapes):
            _add(mpl, axes, shape, order + 1)
        stream = io.BytesIO()
        dpi = min(DPI, int(72 * MOST_PIXELS / max(picture.width, picture.height)))
        figure.savefig(stream, format=form, dpi=dpi, metadata=ABOUT[form])
    return _with_generic_family(stream.getvalue()) if form == "svg" else stream.getvalue()


def _with_generic_family(svg: bytes) -> bytes:
    return svg.replace(b"'DejaVu Sans'", b"'DejaVu Sans', Verdana, sans-serif")


def _add(mpl: Any, axes: Any, shape: Shape, order: int) -> None:
    match shape:
        case Line(points, colour, width, dashed):
            x, y = zip(*points, strict=True)
            style = (0, (4, 3)) if dashed else "solid"
            axes.add_line(
                mpl.lines.Line2D(
                    x, y, color=colour, linewidth=width, linestyle=style, solid_capstyle="butt", zorder=order
                )
            )
        case Area(points, fill, edge, width):
            axes.add_patch(
                mpl.patches.Polygon(
                    points, facecolor=fill, edgecolor=edge or "none", linewidth=width if edge else 0, zorder=order
                )
            )
        case Dot(x, y, radius, fill, edge):
            axes.add_patch(
                mpl.patches.Circle(
                    (x, y),
                    radius,
                    facecolor=fill,
                    edgecolor=edge or "none",
                    linewidth=1.1 if edge else 0,
                    zorder=order,
                )
            )
        case Words():
            axes.text(
                shape.x,
                shape.y,
                shape.text,
                fontsize=shape.size,
                color=shape.colour,
                fontweight="bold" if shape.bold else "normal",
                ha=shape.anchor,
                va="baseline",
                zorder=order,
            )
