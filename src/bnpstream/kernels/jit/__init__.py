"""How loops are compiled, cached and chosen."""
