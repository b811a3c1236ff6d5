"""One look for every report: what was found, as terminal text, HTML, Markdown or SARIF.

`escape` makes text from outside harmless, `page` renders the shared templates, and one module per
document and format (`scan_html`, `probe_html`, ...) turns a versioned document into text. Nothing
here knows how the documents came to be.
"""
