"""Documents: Dirichlet-multinomial scores and the screen in front of them."""
