"""Figures as files for papers and slides: laid out in points, then drawn as SVG, PDF or PNG."""
