"""Drawings as SVG from numbers. Positions are per cent of the width: a drawing narrows and its text stays."""
