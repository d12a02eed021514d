"""The predictor's command."""
