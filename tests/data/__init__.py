"""Tests of readers, writers, schemas, hierarchies, profiles and sample data."""
