"""Checks histories of transactions for the anomalies of Adya and Elle, and decides consistency models by them."""
