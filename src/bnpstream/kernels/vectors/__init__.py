"""Dense vectors with a latent scale per row: directions, and spherical Gaussians."""
