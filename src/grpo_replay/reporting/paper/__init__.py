"""Tables 1 to 13 of the paper, of any study, in its row and column order; and beside its own."""
