"""Loops over rows: visits (ADF and EP), Gibbs sweeps, predictions."""
