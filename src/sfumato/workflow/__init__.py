"""From a request to a release: recipes, the verbs `protect` and `verify`, and `publish`, the only maker of
releases.
"""
