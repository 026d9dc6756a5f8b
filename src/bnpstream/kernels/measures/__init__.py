"""Prior weights of the clusters."""
