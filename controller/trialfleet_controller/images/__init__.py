"""Images of pods: what is put into them, and the programs that build them."""
