"""Pages of the viewer: values in, HTML out."""
