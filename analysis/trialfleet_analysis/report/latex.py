"""Tables of a report for a paper: LaTeX with booktabs."""

from __future__ import annotations

from collections.abc import Iterator

from trialfleet_designs.document.tables import ReportTable, Value
from trialfleet_ledger.display_text import one_line

# What TeX reads as something else, and signs that pdfTeX's fonts lack. Brackets and stars also act after `\\`.
SIGNS = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{sign: f"{{{sign}}}" for sign in "[]*-"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "−": "$-$",
    "×": r"$\times$",
    "±": r"$\pm$",
    "·": r"$\cdot$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "→": r"$\rightarrow$",
    "←": r"$\leftarrow$",
    "∅": r"$\emptyset$",
    "⟨": r"$\langle$",
    "⟩": r"$\rangle$",
    "∞": r"$\infty$",
    "–": "--",
    "…": r"\ldots{}",
    "’": "'",
}
_TRANSLATED = str.maketrans(SIGNS)


def latex(text: str) -> str:
    """`one_line` text that LaTeX typesets as it is.

    >>> latex("50% of a_b\\\\x{"), latex("−0.5")
    ('50\\\\% of a\\\\_b\\\\textbackslash{}x\\\\{', '$-$0.5')
    """
    return one_line(text, longest=4000).translate(_TRANSLATED)


def to_latex(found: ReportTable) -> str:
    """One table with its caption; its file says what it needs."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: ReportTable) -> Iterator[str]:
    kinds = "".join("l" if n in found.words or n == 0 else "r" for n in range(len(found.columns)))
    yield r"% \usepackage{booktabs,textcomp} and, with pdfLaTeX, \usepackage[T1]{fontenc}"
    yield r"\begin{table}"
    yield r"  \centering"
    yield rf"  \caption{{{latex(found.title)}{'. ' if found.lead else ''}{latex(found.lead)}}}"
    yield rf"  \begin{{tabular}}{{{kinds}}}"
    yield r"    \toprule"
    yield _row(latex(name) for name in found.columns)
    yield r"    \midrule"
    yield from (_row(_value(value) for value in row) for row in found.rows)
    yield r"    \bottomrule"
    yield r"  \end{tabular}"
    yield r"\end{table}"


def _row(cells: Iterator[str]) -> str:
    return f"    {' & '.join(cells)} \\\\"


def _value(value: Value) -> str:
    return latex(f"{value.text} ({value.note})" if value.note else value.text)
