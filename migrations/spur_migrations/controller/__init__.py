"""Migrations of a controller's SQL read model."""
