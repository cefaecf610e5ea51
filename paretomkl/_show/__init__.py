"""How a path is shown as HTML: the page with a slider, and tables for notebooks."""
