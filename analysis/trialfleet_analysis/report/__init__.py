"""One campaign's report: assembled once as values, then rendered as HTML, Markdown, JSON and for the terminal."""
