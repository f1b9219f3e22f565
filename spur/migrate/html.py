"""The report as one page for whoever decides on the move: no script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from spur.migrate.report import ScriptReport, Severity, SiteReport, Word

__all__ = ["page_of"]

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; color: #222; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid #ddd;
  vertical-align: top; }
.works, .honoured { color: #17692b; } .differs, .ignored { color: #8a5a00; }
.fails, .missing, .wrong { color: #a5182a; font-weight: 600; }
code { font-size: .9em; background: #f4f4f4; padding: 0 .2em; }
.sum { display: flex; gap: 2rem; font-size: 1.1rem; }
"""

_CLASSES = {Word.WORKS: "works", Word.DIFFERS: "differs", Word.FAILS: "fails"}


def page_of(report: SiteReport, *, title: str) -> str:
    """Return the page."""
    return "".join(f"{line}\n" for line in _lines(report, title))


def _lines(report: SiteReport, title: str) -> Iterator[str]:
    yield '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    yield f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
    yield f"<h1>{escape(title)}</h1>"
    verdicts = [script.verdict for script in report.scripts]
    yield '<p class="sum">'
    for word, name in _CLASSES.items():
        yield f'<span class="{name}">{verdicts.count(word)} {word}</span>'
    yield "</p>"
    for error in report.errors:
        yield f'<p class="fails">{escape(error)}</p>'
    yield "<h2>Scripts</h2><table><tr><th>script</th><th>verdict</th><th>findings</th></tr>"
    for script in report.scripts:
        yield _row(script)
    yield "</table>"
    if report.parameters:
        yield "<h2>Configuration</h2><table>"
        yield "<tr><th>place</th><th>parameter</th><th>verdict</th><th>what it means</th></tr>"
        for each in report.parameters:
            value = f"{each.name}={each.value}" if each.value else each.name
            yield (
                f"<tr><td>{escape(each.file)}:{each.line}</td><td><code>{escape(value)}</code></td>"
                f'<td class="{each.verdict}">{each.verdict}</td><td>{escape(each.note)}</td></tr>'
            )
        yield "</table>"
    yield "</body></html>"


def _row(script: ScriptReport) -> str:
    findings = []
    for note in script.notes:
        place = f"line {note.line}: " if note.line else ""
        instead = f" Instead: <code>{escape(note.instead)}</code>." if note.instead else ""
        weight = "" if note.severity is Severity.REMARK else f' class="{_class(note.severity)}"'
        findings.append(f"<div{weight}>{place}{escape(note.what)}.{instead}</div>")
    return (
        f"<tr><td>{escape(script.name)}</td>"
        f'<td class="{_CLASSES[script.verdict]}">{script.verdict}</td>'
        f"<td>{''.join(findings)}</td></tr>"
    )


def _class(severity: Severity) -> str:
    return "fails" if severity is Severity.FAILS else "differs"
